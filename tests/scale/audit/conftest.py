"""An invented scored table with planted changes."""

from datetime import date

import pytest

from benchmarks.scored_table import Invented, write_scored

PLANTED = Invented(
    8000, vocabulary=400, more_often={"recall": 0.05}, stronger={"word12": 0.5}, planted_from=date(2026, 7, 1)
)


@pytest.fixture(scope="session")
def planted(tmp_path_factory):
    return write_scored(tmp_path_factory.mktemp("planted") / "scored", PLANTED)
