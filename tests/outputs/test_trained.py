"""Models of labels and numbers, trained on texts whose words decide: the whole way, with its controls."""

import json
from dataclasses import replace

import pytest
import torch

from lexical_sae.config.load import build_config
from lexical_sae.data.batches import tokenize
from lexical_sae.evaluation.suite import evaluate
from lexical_sae.explanation import Explanation
from lexical_sae.inference import explain, explain_decided, find_reasons, predict, predict_proba, score
from lexical_sae.intervene import SuppressedModel, model_table
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.persistence import CONFIG, from_pretrained, save_pretrained
from lexical_sae.outputs import CLASSES, Labels, Number
from lexical_sae.recipes import recipe_by_name
from lexical_sae.runs.calibrating import tuned_output
from lexical_sae.runs.in_memory import train_model
from lexical_sae.runs.inputs import documents, require_same_labels
from lexical_sae.runs.measuring.scoring import score as score_split
from lexical_sae.training.loss.criterion import Criterion
from lexical_sae.utils.errors import SettingsError
from tests import tiny
from tests.literal import literal_model
from tests.outputs.planted import BASE, PLANTED, VALUES, label_set, number_set

SETS = {"labels": label_set, "number": number_set}


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    encoder = tiny.saved_encoder(tmp_path_factory.mktemp("outputs") / "encoder")
    return build_config({"model": {"name": str(encoder)}, "training": {"max_epochs": 1}})


@pytest.fixture(scope="module")
def trained(settings):
    """A model of each kind with the data that it learned from."""
    return {kind: (train_model(settings, make(), seed=0)[0], make()) for kind, make in SETS.items()}


def figures(model, dataset):
    return {one["key"]: one["value"] for one in score_split(model, dataset.test).task["figures"]}


def test_planted_words_decide_labels_and_shuffled_labels_teach_nothing(settings, trained):
    model, dataset = trained["labels"]
    assert figures(model, dataset)["macro_f1"] > 0.97
    for name, words in PLANTED.items():
        (why,) = explain(model, [f"the film it was {words[0]} money"], target=name)
        assert why.words[0].word == words[0]
        assert words[0] in {word.word for word in why.words if word.contribution > 1}
    control, shuffled = label_set(shuffled=True), settings.model_copy(deep=True)
    other, _ = train_model(shuffled, control, seed=0)
    assert figures(other, control)["macro_f1"] < 0.75


def test_planted_values_are_recovered(trained):
    model, dataset = trained["number"]
    found = figures(model, dataset)
    assert found["mae"] < 0.5
    assert found["spearman"] > 0.95
    weights = {row.word: row.weights[0] for row in model_table(model).rows if row.weights}
    order = sorted(VALUES, key=VALUES.__getitem__)
    assert sorted(order, key=weights.__getitem__) == order
    # In a text without a planted word there is nothing but what all texts have.
    assert predict(model, "the film it was money plot") == pytest.approx(BASE, abs=1.0)


@pytest.mark.parametrize("kind", SETS)
def test_contributions_and_bias_sum_to_what_is_explained(trained, kind):
    model, dataset = trained[kind]
    for name in dataset.label_names:
        for method in ("dla", "path", "leave_one_out"):
            for why in explain(model, dataset.test.texts[:5], target=name, method=method, all_tokens=True):
                total = why.bias + sum(word.contribution for word in why.words)
                assert total == pytest.approx(why.explained, rel=1e-5, abs=1e-5)
                assert why.identity_error <= 1e-5
                spans = sum(span.score for span in why.spans or ())
                assert why.bias + spans + (why.whole_text or 0) == pytest.approx(why.explained, rel=1e-5, abs=1e-5)


def test_a_label_is_explained_by_its_own_logit(trained):
    model, dataset = trained["labels"]
    text = dataset.test.texts[0]
    shares = predict_proba(model, text)
    for place, name in enumerate(dataset.label_names):
        why = explain(model, text, target=name)
        assert torch.tensor(why.explained / model.temperature).sigmoid() == pytest.approx(
            float(shares[place]), abs=1e-5
        )
        assert why.probability == pytest.approx(float(shares[place]))
        assert why.target == name


def test_the_explained_number_is_the_predicted_one(trained):
    model, dataset = trained["number"]
    for text, why in zip(dataset.test.texts, explain(model, dataset.test.texts), strict=True):
        assert predict(model, text) == pytest.approx(why.explained, rel=1e-6)
        assert float(why.label) == pytest.approx(why.explained, abs=0.01)
        assert why.probability is None


@pytest.mark.parametrize("kind", SETS)
def test_removing_a_word_changes_what_is_explained_by_what_is_said(trained, kind):
    model, dataset = trained[kind]
    text = dataset.test.texts[1]
    why = explain(model, text, target=dataset.label_names[0])
    word = why.words[0]
    without = explain(SuppressedModel(model, [word.word]), text, target=dataset.label_names[0])
    assert without.explained - why.explained == pytest.approx(word.if_removed, abs=1e-4)
    if kind == "labels":
        assert without.label == word.label_if_removed


@pytest.mark.parametrize("kind", SETS)
def test_every_label_that_is_decided_for_gets_an_explanation(trained, kind):
    model, dataset = trained[kind]
    texts = dataset.test.texts[:6]
    decided = predict(model, texts)
    expected = sum(max(1, len(labels)) for labels in decided) if kind == "labels" else len(texts)
    assert len(list(explain_decided(model, texts))) == expected


@pytest.mark.parametrize("kind", SETS)
def test_a_saved_model_is_the_same_model(trained, kind, tmp_path):
    model, dataset = trained[kind]
    loaded = from_pretrained(save_pretrained(model, tmp_path / "model"))
    assert loaded.output == model.output
    assert predict(loaded, dataset.test.texts) == predict(model, dataset.test.texts)
    assert [why.to_json() for why in explain(loaded, dataset.test.texts[:3])] == [
        why.to_json() for why in explain(model, dataset.test.texts[:3])
    ]


@pytest.mark.parametrize("kind", SETS)
def test_an_explanation_comes_back_from_json_and_shows_itself(trained, kind):
    model, dataset = trained[kind]
    why = explain(model, dataset.test.texts[0])
    again = Explanation.from_json(why.to_json())
    assert again.output == kind
    assert again == Explanation(**vars(why.listed()))
    assert why.target in str(why)
    assert why.label in why._repr_html_()
    assert ("logits" in why.sentence()) == (kind == "labels")
    assert "None" not in str(why) + why._repr_html_() + why.sentence() + why.svg()


def test_models_of_earlier_versions_have_classes(tmp_path):
    folder = save_pretrained(literal_model(), tmp_path / "model")
    saved = json.loads((folder / CONFIG).read_text())
    assert saved["output"] == {"kind": "classes"}
    from lexical_sae.models.persistence import digest

    del saved["output"]
    (folder / CONFIG).write_text(json.dumps({**saved, "own_sha256": digest(saved)}))
    assert from_pretrained(folder).output == CLASSES
    assert "output" not in json.loads(explain(literal_model(), "a good film").to_json())


def test_thresholds_are_chosen_on_validation_texts_only(trained):
    model, dataset = trained["labels"]
    assert isinstance(model.output, Labels)
    chosen = tuned_output(model, dataset)
    upside_down = replace(dataset.test, labels=tuple(tuple(1 - mark for mark in row) for row in dataset.test.labels))
    assert tuned_output(model, replace(dataset, test=upside_down, train=upside_down)) == chosen == model.output
    swapped = replace(dataset.validation, labels=tuple(tuple(1 - m for m in row) for row in dataset.validation.labels))
    assert tuned_output(model, replace(dataset, validation=swapped)) != chosen


@pytest.mark.parametrize("kind", SETS)
def test_context_and_auxiliary_head_get_a_gradient(kind):
    dataset = SETS[kind](16)
    parts = ModelConfig.model_validate(recipe_by_name("anchored").model.model_dump())
    output = {"labels": Labels(), "number": Number(centre=10.0, spread=2.0)}[kind]
    from lexical_sae.models.lexical_sae import LexicalSAE

    torch.manual_seed(0)
    model = LexicalSAE(parts, tiny.backbone(), {"classify": dataset.label_names}, output).train()
    with torch.no_grad():
        model.head().word_vectors.normal_()
        assert model.context is not None
        model.context.size.fill_(1.0)
        model.context.layer.weight.normal_(std=0.1)
    task = documents(model, dataset.train)
    criterion = Criterion(model, "classify", recipe_by_name("anchored").training, (1, 1, 1)).train()
    loss, seen = criterion.loss(model, task.encode(model, range(16)), share=1.0, is_constrained=False)
    loss.backward()
    assert seen.ce > 0
    assert model.context.layer.weight.grad is not None
    assert model.context.layer.weight.grad.abs().sum() > 0
    assert criterion.auxiliary.layer.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", SETS)
def test_what_is_for_classes_only_is_refused_in_a_sentence(trained, kind):
    model, dataset = trained[kind]
    text, name = dataset.test.texts[0], dataset.label_names[0]
    for ask in (
        lambda: find_reasons(model, text),
        lambda: explain(model, text, contrast=name),
        lambda: predict(model, text, abstain=0.9),
        lambda: score(model, [text], [name]),
    ):
        with pytest.raises(SettingsError, match=f"one of several labels; this model has {model.output.title}"):
            ask()
    with pytest.raises(SettingsError, match="was trained on"):
        require_same_labels(model, replace(dataset, output="classes"))


def test_other_recipes_refuse_labels():
    from lexical_sae.models.lexical_sae import LexicalSAE

    with pytest.raises(SettingsError, match="recipe anchored"):
        LexicalSAE(ModelConfig(gate="drelu"), tiny.backbone(), {"classify": ("a", "b")}, Labels())


@pytest.mark.parametrize("kind", SETS)
def test_the_suite_measures_what_is_defined_and_says_what_is_not(trained, kind):
    model, dataset = trained[kind]
    found = evaluate(model, dataset.test)
    assert found.task.output == kind
    assert {one.key: one.value for one in found.task.figures} == pytest.approx(figures(model, dataset))
    assert found.task.worst_identity_error <= 1e-5
    assert "performance" in found.skipped
    assert model.output.title in found.skipped["completeness"]
    again = type(found).from_dict(json.loads(json.dumps(found.as_dict())))
    assert again.task.figures == found.task.figures
    assert again.skipped == found.skipped


def test_a_word_that_training_never_met_is_read_from_its_spelling(trained):
    model, _ = trained["number"]
    read = model.opened_to(tokenize(model.tokenizer, ["goodness filmed"], model.max_length).ids)
    assert read.output == model.output
