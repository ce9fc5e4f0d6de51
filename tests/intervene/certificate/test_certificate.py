import json
import shutil
from dataclasses import replace

import pytest
import torch
from tokenizers import normalizers

from lexical_sae.intervene import Lexicon, SuppressedModel, edit_saved_model, suppress_token_globally
from lexical_sae.intervene.certificate import (
    Certificate,
    Leakage,
    LeakageScore,
    NamedTexts,
    certify,
    measure_effect,
    read_certificate,
    verify,
    write_certificate,
)
from lexical_sae.mechanistic.exact import WordSets, remove
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.persistence import WEIGHTS, digest, from_pretrained, save_pretrained
from tests import tiny

TEXTS = (*tiny.GOOD, *tiny.BAD, "the bank near the river has money", "")
LABELS = (2, 2, 2, 2, 0, 0, 0, 0, 1, 1)
DATA = NamedTexts("reviews", TEXTS, LABELS)
BANK = tiny.wordpiece().convert_tokens_to_ids("bank")


def open_model(**parts):
    """A model that opens many words in most texts."""
    model = tiny.model(ModelConfig.model_validate({"gate": "drelu", **parts}))
    with torch.no_grad():
        model.backbone.decoder_bias.add_(2.0)
    return model


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    original = save_pretrained(open_model(expander={"token_ids": (BANK,), "num_senses": 2}), folder / "original")
    edit_saved_model(original, Lexicon(forbid=("film", "bank")), folder / "edited")
    return original, folder / "edited"


@pytest.fixture(scope="module")
def certificate(folders) -> Certificate:
    return certify(*folders, DATA)


def copy_of(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def failing(checks) -> list[str]:
    return [check.claim for check in checks if not check.holds]


def test_a_certificate_verifies_from_the_edited_model_and_the_data_alone(folders, certificate, tmp_path):
    original, edited = folders
    path = write_certificate(certificate, tmp_path / "new" / "certificate.json")
    moved = copy_of(edited, tmp_path)
    checks = verify(read_certificate(path), moved, DATA)
    assert failing(checks) == []
    assert len(checks) == 10
    assert failing(verify(certificate, edited, original=original)) == []


def test_it_names_the_words_and_what_they_did(certificate):
    removed = certificate.construction.removed
    assert [dimension.name for dimension in removed] == ["film", "films", "bank", "bank@sense1"]
    assert all(dimension.was_open for dimension in removed)
    assert certificate.lexicon == Lexicon(forbid=("film", "bank"))
    effect = certificate.effect
    assert effect is not None
    assert effect.strongest_after == 0
    assert [word.name for word in effect.words] == [dimension.name for dimension in removed]
    assert (effect.decisions, effect.data.texts, effect.data.name) == (10, 10, "reviews")
    assert effect.touched > 0


def test_levels_that_were_not_established_are_absent(folders, tmp_path):
    body = json.loads(write_certificate(certify(*folders), tmp_path / "c.json").read_text())
    assert "effect" not in body
    assert "leakage" not in body
    assert "leakage" in body["not_claimed"]


def test_a_measured_leakage_has_its_place(certificate, tmp_path):
    score = LeakageScore(representation="words left", probe="logistic", accuracy=0.7, low=0.6, high=0.8)
    leakage = Leakage(concept="religion", data=DATA.source(), majority=0.5, scores=(score,))
    whole = certificate.model_copy(update={"leakage": leakage})
    assert read_certificate(write_certificate(whole, tmp_path / "c.json")).leakage == leakage


@pytest.mark.parametrize("name", [WEIGHTS, "tokenizer.json", "config.json", "lexicon.yaml"])
@pytest.mark.parametrize("place", [0.3, 0.9])
def test_one_flipped_byte_in_any_file_of_the_model_is_caught(folders, certificate, tmp_path, name, place):
    folder = copy_of(folders[1], tmp_path)
    flip_byte(folder / name, place)
    (check,) = [check for check in verify(certificate, folder) if not check.holds]
    assert check.claim == "the edited model's files are the certified ones"
    assert check.detail == f"changed, missing or added: {name}"


def test_a_flipped_byte_in_the_original_is_caught_where_it_is_given(folders, certificate, tmp_path):
    folder = copy_of(folders[0], tmp_path)
    flip_byte(folder / WEIGHTS, 0.5)
    assert failing(verify(certificate, folders[1], original=folder)) == ["the original's files are the certified ones"]


def flip_byte(path, place: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    "changed",
    [
        replace(DATA, texts=("A good film", *TEXTS[1:])),
        replace(DATA, labels=(1, *LABELS[1:])),
        replace(DATA, labels=None),
        replace(DATA, texts=TEXTS[::-1]),
    ],
    ids=["letter", "label", "no labels", "order"],
)
def test_changed_data_is_caught(folders, certificate, changed):
    assert failing(verify(certificate, folders[1], changed)) == ["the data is reviews as certified"]


def test_one_flipped_byte_in_a_data_file_is_caught_though_the_texts_are_the_same(folders, tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text("text,other\na good film,1\n")
    data = NamedTexts(path.name, ["a good film"], None, path)
    made = certify(*folders, data)
    assert failing(verify(made, folders[1], data)) == []
    path.write_text("text,other\na good film,2\n")
    assert failing(verify(made, folders[1], data)) == ["the data is reviews.csv as certified"]


def false_construction(certificate: Certificate, **changes) -> Certificate:
    return certificate.model_copy(update={"construction": certificate.construction.model_copy(update=changes)})


def test_false_claims_about_the_model_fail_though_the_files_are_right(folders, certificate):
    removed = certificate.construction.removed
    plot, the = (tiny.wordpiece().convert_tokens_to_ids(word) for word in ("plot", "the"))
    claims = {
        "the removed dimensions have the names given": {
            "removed": (removed[0].model_copy(update={"name": "plot"}), *removed[1:])
        },
        "the gate suppresses them": {
            "removed": (*removed, removed[0].model_copy(update={"id": plot, "name": "plot", "was_open": False}))
        },
        "they are bitwise zero at every logit": {
            "removed": (*removed, removed[0].model_copy(update={"id": the, "name": "the", "was_open": False}))
        },
        "no other dimension was suppressed": {"removed": removed[1:]},
        "the input embedding is unchanged": {"input_embedding_sha256": "0" * 64},
        "every other tensor is unchanged": {"other_tensors_sha256": "0" * 64},
    }
    for claim, change in claims.items():
        assert claim in failing(verify(false_construction(certificate, **change), folders[1]))


@pytest.mark.parametrize(
    "field", ["touched", "flipped", "region_changed", "mean_effect", "largest_surprise", "accuracy_after"]
)
def test_a_false_figure_fails(folders, certificate, field):
    value = getattr(certificate.effect, field)
    wrong = certificate.effect.model_copy(update={field: value + (1 if isinstance(value, int) else 0.01)})
    (check,) = [c for c in verify(certificate.model_copy(update={"effect": wrong}), folders[1], DATA) if not c.holds]
    assert check.claim == "the effect on it is the one given"
    assert field in check.detail


@pytest.mark.parametrize("figure", ["largest_effect", "strongest_after"])
def test_a_claim_does_not_widen_its_own_slack(folders, certificate, figure):
    wrong = certificate.effect.model_copy(update={figure: float("inf")})
    assert failing(verify(certificate.model_copy(update={"effect": wrong}), folders[1], DATA)) == [
        "the effect on it is the one given"
    ]


@pytest.mark.parametrize("change", [{"texts": 1_000_000}, {"labelled": False}], ids=["number", "labels"])
def test_a_false_account_of_the_data_fails_though_its_hash_is_right(folders, certificate, change):
    source = certificate.effect.data.model_copy(update=change)
    wrong = certificate.effect.model_copy(update={"data": source})
    checks = verify(certificate.model_copy(update={"effect": wrong}), folders[1], DATA)
    assert failing(checks) == ["the data is reviews as certified"]


@pytest.mark.parametrize("more", ["church", "nosuchword"])
def test_a_lexicon_that_says_more_than_was_removed_fails(folders, certificate, tmp_path, more):
    wrong = certificate.model_copy(update={"lexicon": Lexicon(forbid=("film", "bank", more))})
    checks = verify(read_certificate(write_certificate(wrong, tmp_path / "c.json")), folders[1])
    assert failing(checks) == ["the words that its lexicon forbids are among the removed ones"]
    assert more in next(check.detail for check in checks if not check.holds)


def test_an_edited_model_whose_lexicon_forbids_an_open_word_is_not_certified(folders, tmp_path):
    model = from_pretrained(folders[0])
    suppress_token_globally(model, "film")
    lexicon = Lexicon(forbid=("film", "church")).to_yaml()
    folder = save_pretrained(model, tmp_path / "half", attached={"lexicon.yaml": lexicon})
    with pytest.raises(ValueError, match=r"are not suppressed in it: church.*; edit the original again"):
        certify(folders[0], folder)


def test_a_false_figure_of_a_word_fails(folders, certificate):
    words = list(certificate.effect.words)
    words[0] = words[0].model_copy(update={"mean_activation": 9.0})
    wrong = certificate.effect.model_copy(update={"words": tuple(words)})
    (check,) = [c for c in verify(certificate.model_copy(update={"effect": wrong}), folders[1], DATA) if not c.holds]
    assert "film: mean_activation" in check.detail


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read as JSON"),
        ("{}", "is not a certificate for this version"),
        (None, "there is no certificate"),
        ("flipped", "was changed after it was written"),
    ],
    ids=["json", "empty", "missing", "changed"],
)
def test_what_is_no_certificate_is_refused(certificate, tmp_path, text, message):
    path = tmp_path / "c.json"
    if text == "flipped":
        write_certificate(certificate, path)
        path.write_text(path.read_text().replace('"flipped": ', '"flipped": 1'))
    elif text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_certificate(path)


def test_a_certificate_with_an_earlier_name_of_activations_opens(certificate, tmp_path):
    path = write_certificate(certificate, tmp_path / "c.json")
    body = json.loads(path.read_text().replace("mean_activation", "mean_strength"))
    path.write_text(json.dumps({**body, "own_sha256": digest({**body, "own_sha256": ""})}))
    assert read_certificate(path).effect == certificate.effect


def test_only_removals_are_certified(folders, tmp_path):
    original, edited = folders
    with pytest.raises(ValueError, match="no removal to certify"):
        certify(original, original)
    with pytest.raises(ValueError, match="wrong order"):
        certify(edited, original)
    model = from_pretrained(edited)
    with torch.no_grad():
        model.heads["classify"].class_bias[0] += 1e-6
    with pytest.raises(ValueError, match=r"weights of words: tensor 'heads\.classify\.class_bias'"):
        certify(original, save_pretrained(model, tmp_path / "other"))
    model = from_pretrained(edited)
    model.tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    with pytest.raises(ValueError, match="weights of words: tokenizer"):
        certify(original, save_pretrained(model, tmp_path / "cased"))
    with pytest.raises(ValueError, match="settings or labels"):
        certify(save_pretrained(open_model(), tmp_path / "plain"), edited)


def test_how_a_tokenizer_was_last_called_makes_no_difference(folders, tmp_path):
    model = from_pretrained(folders[0])
    model.tokenizer("a good film", truncation=True, max_length=5, padding="max_length")
    original = save_pretrained(model, tmp_path / "original")
    assert certify(original, folders[1]).construction.removed


def test_an_effect_is_not_claimed_for_a_certificate_without_one(folders):
    with pytest.raises(ValueError, match="claims no effect"):
        verify(certify(*folders), folders[1], DATA)
    with pytest.raises(ValueError, match="is not a folder"):
        verify(certify(*folders), folders[1] / "none")


def effect_of(model, words, data=DATA, **options):
    view = SuppressedModel(model, words)
    gone = [i for word in view.removed for i in word.dimensions]
    return measure_effect(model, view, gone, data, **options), gone


def test_effects_equal_those_of_taking_the_words_from_the_code_in_double_precision():
    model = open_model().double()
    effect, gone = effect_of(model, ["film", "good"], batch_size=3)
    from lexical_sae.data.batches import tokenize

    batch = tokenize(model.tokenizer, TEXTS, model.max_length).batch(range(len(TEXTS)))
    with torch.no_grad():
        state = model.read(model.encode_sparse(batch.input_ids, batch.attention_mask))
    chosen = torch.isin(state.code.ids, torch.tensor(gone))
    exact = remove(model.head(), state, WordSets.together(state.code, chosen))
    decided = state.logits.argmax(-1)
    centered = exact.effects.per_class - exact.effects.per_class.mean(-1, keepdim=True)
    sizes = centered.gather(1, decided[:, None]).abs()
    touched = WordSets.together(state.code, chosen).counts > 0
    left = exact.effects.logits_without(state.logits).argmax(-1)
    assert effect.touched == int(touched.sum())
    assert effect.flipped == int((left != decided).sum())
    assert effect.region_changed == int(exact.region_changed.sum())
    assert effect.mean_effect == pytest.approx(float(sizes[touched].mean()), rel=1e-9)
    assert effect.largest_effect == pytest.approx(float(sizes.max()), rel=1e-9)
    labels = torch.tensor(LABELS)
    assert effect.accuracy_before == pytest.approx(float((decided == labels).double().mean()))
    assert effect.accuracy_after == pytest.approx(float((left == labels).double().mean()))
    film = effect.words[[word.name for word in effect.words].index("film")]
    values = state.code.values[state.code.ids == gone[0]]
    assert (film.decisions, film.mean_activation) == (len(values), pytest.approx(float(values.mean())))


def test_contributions_predict_the_effect_where_no_hidden_unit_switches():
    model = open_model().double()
    with torch.no_grad():
        model.head().hidden_bias.fill_(100.0)
    effect, _ = effect_of(model, ["film", "good"])
    assert effect.region_changed == 0
    assert effect.largest_effect > 1e-3
    assert effect.largest_surprise < 1e-10
    with torch.no_grad():
        model.head().hidden_bias.zero_()
    switched, _ = effect_of(model, ["film", "good"])
    assert switched.region_changed > 0
    assert switched.largest_surprise > 1e-6


def test_tags_have_effects_too_word_by_word():
    model = open_model()
    effect, _ = effect_of(model, ["film"], replace(DATA, labels=None), head="tag")
    words = sum(len(text.split()) for text in TEXTS)
    assert effect.decisions == words
    assert 0 < effect.touched <= words
    assert effect.strongest_after == 0
    assert effect.accuracy_before is None
    with pytest.raises(ValueError, match="decides on words"):
        effect_of(model, ["film"], head="tag")


def test_texts_without_a_removed_word_are_not_touched():
    model = open_model()
    with torch.no_grad():
        model.gate.theta[list(model.dimensions.find("film"))] = 1e4
    effect, _ = effect_of(model, ["film"])
    assert (effect.touched, effect.flipped, effect.region_changed, effect.mean_effect) == (0, 0, 0, 0.0)


def test_no_text_is_no_data_set():
    with pytest.raises(ValueError, match="has no text"):
        effect_of(open_model(), ["film"], NamedTexts("nothing", ()))


def test_a_word_that_was_closed_before_is_certified_as_such(folders, tmp_path):
    model = from_pretrained(folders[0])
    suppress_token_globally(model, "dog")
    original = save_pretrained(model, tmp_path / "original")
    edit_saved_model(original, Lexicon(forbid=("dog", "film")), tmp_path / "edited")
    made = certify(original, tmp_path / "edited", DATA)
    assert {d.name: d.was_open for d in made.construction.removed} == {
        "film": True,
        "films": True,
        "dog": False,
        "dogs": False,
    }
    assert failing(verify(made, tmp_path / "edited", DATA)) == []
