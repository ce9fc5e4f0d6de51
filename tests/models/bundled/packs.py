"""Small encoders in the formats of the bundled ones."""

import json
import zipfile

import numpy as np

from tests import tiny

WIDE, INNER, POSITIONS, GROUP = 8, 16, 66, 4
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def tokenizer_json() -> str:
    """A byte-level BPE tokenizer with RoBERTa's special tokens."""
    made = json.loads(tiny.byte_bpe().backend_tokenizer.to_str())
    words = [word for word in made["model"]["vocab"] if word not in tiny.SPECIALS]
    made["model"]["vocab"] = {word: i for i, word in enumerate([*SPECIALS, *words])}
    made["added_tokens"] = [{**made["added_tokens"][0], "id": i, "content": token} for i, token in enumerate(SPECIALS)]
    return json.dumps(made)


def tensors(words, layers=1, seed=0):
    """Name, shape and numbers of every tensor, as a pack has them: matrices rounded to 8 bits."""
    shapes = {"word_emb": (words, WIDE), "pos_emb": (POSITIONS, WIDE), "type_emb": (1, WIDE)}
    shapes |= {"emb_ln.w": (WIDE,), "emb_ln.b": (WIDE,)}
    for i in range(layers):
        shapes |= {f"l{i}.qkv.w": (3 * WIDE, WIDE), f"l{i}.qkv.b": (3 * WIDE,)}
        shapes |= {f"l{i}.ao.w": (WIDE, WIDE), f"l{i}.ao.b": (WIDE,)}
        shapes |= {f"l{i}.aln.w": (WIDE,), f"l{i}.aln.b": (WIDE,)}
        shapes |= {f"l{i}.f1.w": (INNER, WIDE), f"l{i}.f1.b": (INNER,)}
        shapes |= {f"l{i}.f2.w": (WIDE, INNER), f"l{i}.f2.b": (WIDE,)}
        shapes |= {f"l{i}.fln.w": (WIDE,), f"l{i}.fln.b": (WIDE,)}
    draw = np.random.default_rng(seed)
    return {name: draw.normal(size=shape).astype("<f4") for name, shape in shapes.items()}


def pack(change=lambda _: None, layers=1, tail=b""):
    """The bytes of a pack and the numbers that are in it; `change` edits the header first."""
    tokenizer = tokenizer_json().encode()
    words = len(json.loads(tokenizer)["model"]["vocab"])
    entries, parts, kept = [], [], {}
    for name, numbers in tensors(words, layers).items():
        entry = {"name": name, "dtype": "f32", "shape": list(numbers.shape), "group": 0}
        if name.endswith(".w") and numbers.ndim == 2:
            groups = numbers.reshape(-1, GROUP)
            scales = (np.abs(groups).max(1) / 127).astype("<f4")
            rounded = np.round(groups / scales[:, None]).astype("i1")
            entry |= {"dtype": "i8", "group": GROUP}
            parts.append(rounded.tobytes() + scales.tobytes())
            numbers = (rounded * scales[:, None]).reshape(numbers.shape)
        else:
            parts.append(numbers.tobytes())
        kept[name] = numbers
        entries.append({**entry, "len": len(parts[-1])})
    header = {
        "format": 1,
        "arch": {
            "hidden": WIDE,
            "layers": layers,
            "heads": 2,
            "intermediate": INNER,
            "vocab": words,
            "max_positions": POSITIONS,
            "type_vocab": 1,
            "layer_norm_eps": 1e-12,
            "position_offset": 2,
        },
        "quantization": "int8",
        "tokenizer_len": len(tokenizer),
        "tensors": entries,
    }
    change(header)
    text = json.dumps(header).encode()
    return b"HMSEMB01" + len(text).to_bytes(8, "little") + text + tokenizer + b"".join(parts) + tail, kept


def zipped(path, folder, files):
    """A zip with these files in a folder."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"{folder}/{name}", content)
    return path.read_bytes()
