"""Settings of experiments that take a few steps on a tiny encoder."""

from typing import Any

from tests import tiny
from tests.tiny import BAD, GOOD


def tiny_settings(place) -> dict[str, Any]:
    """An experiment on 96 short reviews, its data and encoder made in the folder."""
    rows = [f"{text} {i},{label}" for i in range(12) for texts, label in ((GOOD, 1), (BAD, 0)) for text in texts]
    (place / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    return {
        "data": {"dataset_name": str(place / "reviews.csv")},
        "model": {"name": str(tiny.saved_encoder(place / "encoder")), "max_length": 16},
        "training": {"max_epochs": 2, "batch_size": 16},
    }
