"""The engine of a cluster writes what the local one does, file for file, whoever dies."""

import logging
import os
import signal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexical_sae.models.persistence import saved_sha256
from lexical_sae.scale.inputs import Columns, find_inputs
from lexical_sae.scale.score import score_files
from lexical_sae.scale.scorer import ScoreSettings
from lexical_sae.utils.errors import SavedFileError, UnavailableError
from tests.literal import TEXTS, literal_model

ray = pytest.importorskip("ray", reason="needs Ray: pip install -r requirements-ray.txt")
from lexical_sae.scale import on_ray  # noqa: E402 - Ray may be missing

pytestmark = [
    pytest.mark.ray,
    # Ray leaves its sockets and processes to be collected.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
]


class DiesOnce(on_ray.ScoringActor):
    """Is killed while it has part 3, the first time."""

    def score(self, part):
        marker = os.path.join(self._asked[2], ".died")
        if part.key.number == 3 and not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().score(part)


class DiesAlways(on_ray.ScoringActor):
    """Is killed whenever it has part 1."""

    def score(self, part):
        if part.key.number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().score(part)


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return str(literal_model().save_pretrained(tmp_path_factory.mktemp("saved") / "model"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.parquet"
    rows = [{"text": f"{TEXTS[i % 5]} {'good ' * (i % 4)}" if i % 7 else None, "n": i} for i in range(50)]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def run(saved, texts, out, **others):
    settings = ScoreSettings(model=saved_sha256(saved), columns=Columns(text="text", kept=("n",)), rows=4, batch_size=3)
    return score_files(saved, find_inputs([texts]), settings, str(out), **others)


def files(out):
    return {path.relative_to(out): pq.read_table(path) for path in sorted(out.rglob("part-*.parquet"))}


@pytest.fixture(scope="module")
def whole(saved, texts, tmp_path_factory):
    out = tmp_path_factory.mktemp("scored") / "whole"
    run(saved, texts, out, workers=1)
    return files(out)


@pytest.mark.usefixtures("cluster")
def test_two_actors_write_the_files_of_the_local_engine(saved, texts, whole, tmp_path):
    totals = run(saved, texts, tmp_path / "out", engine=on_ray.RayEngine(), workers=2)
    assert files(tmp_path / "out") == whole
    assert (totals.rows, totals.rejected, totals.parts) == (42, 8, 13)


@pytest.mark.usefixtures("cluster")
def test_an_actor_that_is_killed_costs_no_row(saved, texts, whole, tmp_path):
    run(saved, texts, tmp_path / "out", engine=on_ray.RayEngine(actor=DiesOnce), workers=2)
    assert (tmp_path / "out" / ".died").exists()
    assert files(tmp_path / "out") == whole


@pytest.mark.usefixtures("cluster")
def test_more_actors_than_cpus_wait_for_nobody(saved, texts, whole, tmp_path):
    run(saved, texts, tmp_path / "out", engine=on_ray.RayEngine(), workers=3)
    assert files(tmp_path / "out") == whole


@pytest.mark.usefixtures("cluster")
def test_a_part_that_kills_every_actor_is_given_up_and_resumed_elsewhere(saved, texts, whole, tmp_path):
    with pytest.raises(UnavailableError, match="3 actors died over part 1 of file 0"):
        run(saved, texts, tmp_path / "out", engine=on_ray.RayEngine(actor=DiesAlways), workers=2)
    run(saved, texts, tmp_path / "out", resume=True, workers=1)
    assert files(tmp_path / "out") == whole


@pytest.mark.usefixtures("cluster")
def test_another_model_is_refused_in_one_sentence(saved, texts, tmp_path):
    settings = ScoreSettings(model="0" * 64, columns=Columns(text="text"), rows=4)
    with pytest.raises(SavedFileError, match="give every process the same folder") as refused:
        score_files(saved, find_inputs([texts]), settings, str(tmp_path / "out"), engine=on_ray.RayEngine(), workers=1)
    assert "Traceback" not in str(refused.value)


def test_one_cpu_is_left_where_there_are_more_than_two(monkeypatch):
    for there, gpus, room in (({"CPU": 2.0}, 0, 2), ({"CPU": 8.0}, 0, 7), ({"CPU": 8.0, "GPU": 2.0}, 0.5, 4)):
        monkeypatch.setattr(ray, "cluster_resources", lambda there=there: there)
        assert on_ray.RayEngine(gpus=gpus)._room() == room
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 8.0})
    with pytest.raises(UnavailableError, match="no room for an actor"):
        on_ray.RayEngine(gpus=1)._room()
