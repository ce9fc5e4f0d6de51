import json

import pytest
import torch

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.intervene import attached_lexicon
from lexical_sae.intervene.certificate import NamedTexts, read_certificate, verify
from lexical_sae.intervene.concepts import OtherTexts, SurgeryPlan, run_surgery
from lexical_sae.intervene.concepts.leakage import BEFORE
from lexical_sae.models.persistence import save_pretrained
from tests import tiny

PLAN = SurgeryPlan(
    concept="film", positive=("positive",), words=("film",), swaps={"film": "movie"}, neighbours=1, correlated=2
)
METHODS = [BEFORE, "zeroing", "expanded word set", "LEACE", "mean projection", "random words"]


def split(size: int, start: int) -> TextSplit:
    words = [w for w in tiny.WORDS if w.isalpha() and w not in ("film", "films", "movie")]
    texts = []
    for n in range(start, start + size):
        noun = "film" if n % 2 else "movie"
        texts.append(" ".join([words[n % 31], noun, words[(7 * n) % 29], words[(3 * n + 1) % 23]]))
    labels = tuple((n // 3) % 3 for n in range(size))
    return TextSplit(tuple(texts), labels, {"film": tuple(float(" film " in t) for t in texts), "dogs": (0.0,) * size})


@pytest.fixture(scope="module")
def dataset():
    labels = ("negative", "neutral", "positive")
    return TextDataset("planted", labels, split(120, 0), split(80, 120), split(80, 200))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model = tiny.model()
    with torch.no_grad():
        model.backbone.decoder_bias.add_(1.0)
    return save_pretrained(model, tmp_path_factory.mktemp("models") / "model")


@pytest.fixture(scope="module")
def out(folder, dataset, tmp_path_factory):
    place = tmp_path_factory.mktemp("results") / "surgery"
    others = [OtherTexts("templates.csv", dataset.validation, (0,))]
    run_surgery(folder, dataset, PLAN, place, others)
    return place


def test_every_removal_is_measured_by_every_measure_on_every_set(out):
    results = json.loads((out / "surgery.json").read_text())
    assert list(results["methods"]) == METHODS
    for found in results["methods"].values():
        assert set(found) == {"audit", "accuracy_lost", "changed", "leakage", "swap"}
        assert found["swap"]["texts"] == 80
        assert [g["is_too_small"] for g in found["audit"]["groups"]] == [False, True]
    assert results["methods"][BEFORE]["changed"] == 0
    assert results["methods"][BEFORE]["accuracy_lost"]["mean"] == 0
    assert list(results["others"]["templates.csv"]) == METHODS
    assert results["words"] == ["film", "films"]
    assert set(results["closed_with"]["zeroing"]) < set(results["closed_with"]["expanded word set"])
    assert not set(results["closed_with"]["random words"]) & set(results["words"])
    assert {word["group"] for word in results["suspects"]} == {"film"}
    assert all(word["name"][:1].isalpha() for word in results["suspects"])
    assert results["suspect_pieces"] > 0


def test_leace_takes_the_concept_out_and_not_the_label(out):
    results = json.loads((out / "surgery.json").read_text())
    linear = {
        name: next(score["accuracy"] for score in found if score["probe"] == "logistic regression")
        for name, found in results["ceilings"]["scores"].items()
        if name in (BEFORE, "LEACE", "mean projection")
    }
    assert linear[BEFORE] == 1
    assert max(linear["LEACE"], linear["mean projection"]) < 0.7


def test_the_edited_model_is_certified_at_three_levels(out, dataset):
    certificate = read_certificate(out / "certificate.json")
    assert certificate.effect is not None
    assert certificate.leakage is not None
    assert certificate.leakage.concept == "film"
    texts = NamedTexts("planted", dataset.test.texts, list(dataset.test.labels))
    assert all(check.holds for check in verify(certificate, out / "edited", texts))
    lexicon = attached_lexicon(out / "edited")
    assert lexicon is not None
    assert lexicon.forbid == ("film",)


def test_page_and_plot_show_the_removals(out):
    page = (out / "surgery.html").read_text()
    assert 'href="certificate.json"' in page
    assert "LEACE" in page
    assert "templates.csv" in page
    assert "Too few texts to say anything: dogs." in page
    assert (out / "leakage.svg").read_text().startswith("<svg")


def test_with_nothing_to_mend_suppression_and_leace_are_measured_and_nothing_is_certified(folder, dataset, tmp_path):
    plan = PLAN.model_copy(update={"words": (), "epsilon": 1.0})
    results = run_surgery(folder, dataset, plan, tmp_path)
    assert results["words"] == []
    assert results["choice"]["verdict"].endswith("nothing to remove")
    assert list(results["methods"]) == METHODS
    assert all("leakage" in found for found in results["methods"].values())
    assert results["measured_words"]
    assert sorted(results["closed_with"]["zeroing"]) == sorted(results["measured_words"])
    page = (tmp_path / "surgery.html").read_text()
    assert "Suppression (zeroing) and LEACE are measured all the same" in page
    for left in ("certificate.json", "edited", "lexicon.yaml"):
        assert not (tmp_path / left).exists()
    assert "certificate.json" not in page


def test_erasures_are_measured_where_no_word_tells_of_the_concept(folder, dataset, tmp_path):
    plan = PLAN.model_copy(update={"words": (), "epsilon": 1.0, "correlated": 0})
    results = run_surgery(folder, dataset, plan, tmp_path)
    assert results["measured_words"] == []
    assert list(results["methods"]) == [BEFORE, "LEACE", "mean projection"]
    assert "only LEACE and the projection of the means are measured" in (tmp_path / "surgery.html").read_text()


def test_train_texts_are_drawn_by_lot_where_there_are_too_many(folder, dataset, tmp_path):
    train = dataset.train
    last = sorted(range(len(train)), key=lambda row: " film " in train.texts[row])
    sorted_set = TextDataset("sorted", dataset.label_names, train.take(last), dataset.validation, dataset.test)
    results = run_surgery(folder, sorted_set, PLAN.model_copy(update={"train_texts": 50}), tmp_path)
    assert results["texts"]["train"] == 50
    assert {word["group"] for word in results["suspects"]} == {"film"}


def test_data_without_identities_is_refused_before_anything_is_read(folder, dataset, tmp_path):
    bare = TextDataset("bare", dataset.label_names, *(TextSplit(s.texts, s.labels) for s in (dataset.train,) * 3))
    with pytest.raises(ValueError, match="no identity columns"):
        run_surgery(folder, bare, PLAN, tmp_path)


def test_groups_by_words_stand_in_for_identities(folder, dataset, tmp_path):
    bare = TextDataset(
        "bare",
        dataset.label_names,
        *(TextSplit(s.texts, s.labels) for s in (dataset.train, dataset.validation, dataset.test)),
    )
    plan = PLAN.model_copy(update={"words": (), "epsilon": 1.0, "group_words": {"film": ("film",)}})
    results = run_surgery(folder, bare, plan, tmp_path)
    assert [g["name"] for g in results["methods"][BEFORE]["audit"]["groups"]] == ["film"]


def test_an_unknown_positive_label_is_refused(folder, dataset, tmp_path):
    with pytest.raises(ValueError, match="positive label 'toxic' is not a label"):
        run_surgery(folder, dataset, PLAN.model_copy(update={"positive": ("toxic",)}), tmp_path)
