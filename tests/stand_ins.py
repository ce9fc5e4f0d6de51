"""Small stand-ins for what the network brings, put where the real code looks for the real thing."""

from huggingface_hub import constants
from safetensors.torch import save_file

from lexical_sae.data.sources.planted import planted_bias
from lexical_sae.data.sources.planted_files import write_civilcomments
from lexical_sae.models.bundled import BUNDLED, DEFAULT_BACKBONE, BundledEncoder, WheelFolder
from lexical_sae.models.pretrained import HEAD_FILE, load_backbone
from lexical_sae.utils.downloads import sha256_of
from tests import tiny
from tests.data import folders

HUB_MODEL = "answerdotai/ModernBERT-base"


def bundled_encoder(monkeypatch, cache):
    """A tiny encoder with its lexical head, under the name and in the cache folder of the bundled one."""
    source = BUNDLED[DEFAULT_BACKBONE].source
    assert isinstance(source, WheelFolder)
    archives = source.archives
    folder = cache / f"{archives[0].package}-{archives[0].version}-{archives[0].sha256[:12]}" / archives[0].member
    tiny.saved_encoder(folder)
    head = {name: parameter.detach().clone() for name, parameter in load_backbone(str(folder)).lexical_head().items()}
    save_file(head, cache / HEAD_FILE)
    encoder = BundledEncoder(source, sha256_of(folder / "model.safetensors"), cache)
    monkeypatch.setitem(BUNDLED, DEFAULT_BACKBONE, encoder)
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(cache))


def hub_model(monkeypatch, cache):
    """A tiny ModernBERT in a hub cache, as a download of the real one would lie there. The hub itself is offline."""
    folder = cache / f"models--{HUB_MODEL.replace('/', '--')}"
    snapshot = folder / "snapshots" / ("0" * 40)
    tiny.masked_lm("modernbert").save_pretrained(snapshot)
    tiny.wordpiece().save_pretrained(snapshot)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(snapshot.name)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def data_folder(monkeypatch, folder):
    """Every data set that a printed command reads, made small, in the folder that LEXICAL_SAE_DATA names."""
    for name in ("sst2", "ag_news", "imdb", "movie_snippets", "conll2003"):
        (folder / name).mkdir(parents=True)
    for write in (folders.sst2, folders.ag_news, folders.imdb, folders.movie_snippets):
        write(folder / write.__name__, reviews)
    folders.conll_capitals(folder / "conll2003", ("train", "valid", "test"))
    write_civilcomments(planted_bias(240, groups=("muslim", "christian")).dataset, folder / "civilcomments")
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(folder))


def reviews(n, prefix="text"):
    """`n` different texts in words that the tiny tokenizer knows, bad and good in turn."""
    pairs = list(zip(tiny.BAD, tiny.GOOD, strict=True))
    return [f"{pairs[i // 2 % len(pairs)][i % 2]} {prefix} {i}" for i in range(n)]
