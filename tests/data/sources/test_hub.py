"""Hub loading against a stand-in for the `datasets` package."""

import sys
from types import SimpleNamespace

import pytest

from lexical_sae.data import load_tagged_dataset, load_text_dataset
from lexical_sae.data.sources.registry import TEXT_DATASETS
from lexical_sae.data.sources.toxicity import CIVIL_IDENTITIES
from tests.data.folders import invented


class FakeSplit:
    """The part of `datasets.Dataset` that is used."""

    def __init__(self, columns, features=None):
        self.columns, self.column_names, self.features = columns, list(columns), features or {}

    def __getitem__(self, name):
        return iter(self.columns[name])

    def __len__(self):
        return len(next(iter(self.columns.values())))


@pytest.fixture
def hub(monkeypatch):
    """A hub to put splits on: `hub[repository, configuration, split] = FakeSplit(...)`."""
    monkeypatch.delenv("LEXICAL_SAE_DATA", raising=False)
    monkeypatch.setattr(
        "lexical_sae.data.loader.fetch_from_pypi", lambda _: (_ for _ in ()).throw(RuntimeError("offline"))
    )
    shelf = {}

    def load_dataset(path, name=None, *, split):
        if (path, name, split) not in shelf:
            raise FileNotFoundError(f"{path} is not on the hub")
        return shelf[path, name, split]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    return shelf


def put(hub, repository, make, splits=(("train", 200), ("test", 20)), configuration=None, features=None):
    for split, n in splits:
        hub[repository, configuration, split] = FakeSplit(make(n, split), features)


def labelled(n, split, classes=2):
    return {"text": invented(n, split), "label": [i % classes for i in range(n)]}


@pytest.mark.parametrize("name", ["ag_news", "imdb", "yelp"])
def test_plain_sets_load(hub, name):
    spec = TEXT_DATASETS[name]
    assert spec.hub is not None
    put(hub, spec.hub.ids[0][0], lambda n, split: labelled(n, split, len(spec.label_names)))
    dataset = load_text_dataset(name)
    assert len(dataset.test) == 20
    assert set(dataset.test.labels) == set(range(len(spec.label_names)))
    assert dataset.notes[0] == f"read from the hub, {spec.hub.ids[0][0]}"


def test_sst2_falls_back_to_glue_and_reports_on_its_validation_split(hub):
    def make(n, split):
        return {"sentence": invented(n, split), "label": [i % 2 for i in range(n)], "idx": list(range(n))}

    put(hub, "nyu-mll/glue", make, (("train", 300), ("validation", 30)), configuration="sst2")
    dataset = load_text_dataset("sst2")
    assert len(dataset.test) == 30
    assert dataset.notes[0] == "read from the hub, nyu-mll/glue:sst2"


def test_banking77_reads_names_from_either_copy(hub):
    names = ["age_limit", "Refund"]
    put(hub, "legacy-datasets/banking77", labelled, features={"label": SimpleNamespace(names=names)})
    from_features = load_text_dataset("banking77")
    put(hub, "mteb/banking77", lambda n, s: labelled(n, s) | {"label_text": [names[i % 2] for i in range(n)]})
    from_column = load_text_dataset("banking77")
    assert from_features.label_names == from_column.label_names == ("Refund", "age_limit")
    assert from_features.test == from_column.test


@pytest.mark.parametrize("unlabelled", [-1, None])
@pytest.mark.parametrize("name", ["banking77", "imdb"])
def test_unlabelled_rows_are_left_out_not_the_last_class(hub, name, unlabelled):
    def make(n, split):
        columns = labelled(n, split)
        columns["label"][:3] = [unlabelled] * 3
        return columns

    spec = TEXT_DATASETS[name]
    assert spec.hub is not None
    put(hub, spec.hub.ids[0][0], make, features={"label": SimpleNamespace(names=["first", "second"])})
    dataset = load_text_dataset(name)
    assert len(dataset.test) == 17
    assert sum(dataset.test.labels) == 9
    assert any(note.startswith("left out 3 unusable rows") and "no label" in note for note in dataset.notes)


def test_a_class_number_without_a_name_is_refused_with_its_row(hub):
    features = {"label": SimpleNamespace(names=["first"])}
    put(hub, "mteb/banking77", labelled, features=features)
    with pytest.raises(FileNotFoundError, match=r"mteb/banking77\[train\] row 1: 'label' holds 1, .*1 names"):
        load_text_dataset("banking77")


def test_civilcomments_needs_its_identities(hub):
    def make(n, split):
        toxicity = [0.5 * (i % 2) for i in range(n)]
        return {"comment_text": invented(n, split), "toxicity": toxicity} | {
            name: [0.0] * n for name in CIVIL_IDENTITIES
        }

    splits = (("train", 100), ("validation", 10), ("test", 10))
    put(
        hub,
        "pietrolesci/civilcomments-wilds",
        lambda n, s: {k: v for k, v in make(n, s).items() if k != "male"},
        splits,
    )
    with pytest.raises(
        FileNotFoundError, match=r"lacks the columns \['male'\]; columns seen: \['comment_text', 'toxicity'"
    ):
        load_text_dataset("civilcomments")
    put(hub, "pietrolesci/civilcomments-wilds", make, splits)
    assert len(load_text_dataset("civilcomments").test.identities or ()) == 24


def test_beavertails_uses_the_30k_splits(hub):
    def make(n, split):
        return {"prompt": invented(n, split), "response": ["answer"] * n, "is_safe": [i % 2 == 0 for i in range(n)]}

    put(hub, "PKU-Alignment/BeaverTails", make, (("30k_train", 100), ("30k_test", 10)))
    assert load_text_dataset("beavertails").test.labels == (0, 1) * 5


def test_conll_tags_get_their_names(hub):
    names = ["O", "B-PER", "I-PER"]
    features = {"ner_tags": SimpleNamespace(feature=SimpleNamespace(names=names))}

    def make(n, split):
        return {"tokens": [[f"{split}{i}", "Lee", "ran"] for i in range(n)], "ner_tags": [[1, 2, 0]] * n}

    put(hub, "lhoestq/conll2003", make, (("train", 9), ("validation", 3), ("test", 4)), features=features)
    dataset = load_tagged_dataset("conll2003")
    assert dataset.tag_names == tuple(names)
    assert dataset.test.tags == (("B-PER", "I-PER", "O"),) * 4
    assert len(dataset.validation) == 3
    put(hub, "lhoestq/conll2003", lambda n, _: {"tokens": [["Lee"]] * n, "ner_tags": [[-1]] * n}, features=features)
    with pytest.raises(FileNotFoundError, match=r"row 0: 'ner_tags' holds -1"):
        load_tagged_dataset("conll2003")


def test_every_failed_id_is_named(hub):
    put(hub, "stanfordnlp/sst2", labelled)
    with pytest.raises(
        FileNotFoundError, match=r"stanfordnlp/sst2\[train\] lacks the columns \['sentence'\].*nyu-mll/glue:sst2"
    ):
        load_text_dataset("sst2")


def test_without_a_network_only_one_id_is_waited_for(hub, monkeypatch):
    asked = []

    def unreachable(path, name=None, *, split):
        asked.append((path, name, split))
        raise ConnectionError("Couldn't reach the hub")

    monkeypatch.setattr(sys.modules["datasets"], "load_dataset", unreachable)
    with pytest.raises(FileNotFoundError, match="Couldn't reach the hub"):
        load_text_dataset("sst2")
    assert asked == [("stanfordnlp/sst2", None, "train")]
    assert not hub
