"""Certificates of edited tables and of unseen words that were suppressed."""

import pytest
import torch

from lexical_sae.intervene import Lexicon, edit_saved_by_table, edit_saved_model
from lexical_sae.intervene.certificate import (
    Certificate,
    NamedTexts,
    certify,
    read_certificate,
    verify,
    write_certificate,
)
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from tests.literal import TEXTS, UNSEEN, literal_model

DATA = NamedTexts("reviews", (*TEXTS, *UNSEEN), (0, 1, 2, 0, 1, 2, 0))
HEADER = "word,weight:negative,weight:neutral,weight:positive,suppress\n"
TABLE = HEADER + "film,1.5,0.25,-1.75,\nboringly,-2,0,2,\nfilmed,0,0,0,\nunhappyness,,,,\ngood,,,,\n"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    original = save_pretrained(literal_model(), folder / "original")
    (folder / "words.csv").write_text(TABLE)
    edit_saved_by_table(original, folder / "words.csv", folder / "edited")
    edit_saved_model(original, Lexicon(forbid=("boringly", "church")), folder / "without")
    return original, folder / "edited", folder / "without"


@pytest.fixture(scope="module")
def certificate(folders) -> Certificate:
    return certify(folders[0], folders[1], DATA)


def failing(checks) -> list[str]:
    return [check.claim for check in checks if not check.holds]


def false_construction(certificate: Certificate, **changes) -> Certificate:
    return certificate.model_copy(update={"construction": certificate.construction.model_copy(update=changes)})


def test_a_certificate_of_a_table_verifies_from_the_edited_model_and_the_data_alone(folders, certificate, tmp_path):
    original, edited, _ = folders
    path = write_certificate(certificate, tmp_path / "certificate.json")
    checks = verify(read_certificate(path), edited, DATA, original=original)
    assert failing(checks) == []
    assert {"the changed words have the weights given", "the original reads the added words as given"} <= {
        check.claim for check in checks
    }


def test_it_names_what_changed_with_old_and_new_weights(folders, certificate):
    before, after = (from_pretrained(folder).head().word_vectors for folder in folders[:2])
    done = certificate.construction
    changed = {row.name: row for row in done.changed}
    assert changed.keys() == {"film", "filmed", "boringly"}
    film = changed["film"]
    assert torch.equal(torch.tensor(film.before), before[film.id])
    assert torch.equal(torch.tensor(film.after), after[film.id])
    assert film.after == (1.5, 0.25, -1.75)
    assert changed["filmed"].after == (0, 0, 0)
    assert {"good", "goods", "unhappyness"} <= {dimension.name for dimension in done.removed}
    assert {"boringly", "unhappyness", "goods"} <= set(done.added)
    assert certificate.lexicon == Lexicon(forbid=("unhappyness", "good"))
    effect = certificate.effect
    words = {word.name: word for word in effect.words}
    assert words["good"].mean_contribution != 0 == words["good"].mean_contribution_after
    assert words["boringly"].mean_contribution_after != 0
    assert effect.touched == 4
    assert effect.strongest_after == 0
    # A table is linear: the effect is what its words no longer say.
    assert effect.largest_surprise < 1e-5


def test_a_certificate_of_an_unseen_word_that_was_removed_verifies(folders, tmp_path):
    original, _, without = folders
    made = certify(original, without, DATA)
    path = write_certificate(made, tmp_path / "certificate.json")
    assert failing(verify(read_certificate(path), without, DATA, original=original)) == []
    removed = {dimension.name: dimension for dimension in made.construction.removed}
    assert removed["boringly"].was_open
    assert "boringly" in made.construction.added
    assert made.construction.changed == ()
    (effect,) = [word for word in made.effect.words if word.name == "boringly"]
    assert (effect.decisions, effect.mean_contribution_after) == (2, 0.0)
    assert effect.mean_contribution != 0


def test_false_claims_fail_though_the_files_are_right(folders, certificate):
    edited = folders[1]
    rows = certificate.construction.changed
    film, others = rows[0], rows[1:]
    claims = {
        "the changed words have the weights given": (film.model_copy(update={"after": (1.5, 0.25, -1.5)}), *others),
        "every other tensor is unchanged": (film.model_copy(update={"before": (0.0, 0.0, 0.0)}), *others),
        "no other dimension was suppressed": (film.model_copy(update={"was_open": False}), *others),
    }
    for claim, changed in claims.items():
        assert claim in failing(verify(false_construction(certificate, changed=changed), edited))
    added = certificate.construction.added
    for false in ((), added[:-1], (*added[:-1], "goodness")):
        assert failing(verify(false_construction(certificate, added=false), edited))
    boringly = next(row for row in rows if row.name == "boringly")
    other = tuple(row for row in rows if row is not boringly)
    wrong = (*other, boringly.model_copy(update={"before": (9.0, 9.0, 9.0)}))
    assert failing(verify(false_construction(certificate, changed=wrong), edited)) == [
        "the original reads the added words as given"
    ]
    beyond = (film.model_copy(update={"id": 10_000}), *others)
    assert "the changed words have the weights given" in failing(
        verify(false_construction(certificate, changed=beyond), edited)
    )


def test_a_false_effect_fails(folders, certificate):
    assert certificate.effect is not None
    false = certificate.effect.model_copy(update={"mean_effect": certificate.effect.mean_effect + 0.1})
    checks = verify(certificate.model_copy(update={"effect": false}), folders[1], DATA)
    assert failing(checks) == ["the effect on it is the one given"]


@pytest.mark.parametrize("tensor", ["heads.classify.class_bias", "heads.tag.word_vectors", "context.size"])
def test_anything_else_that_changed_is_refused(folders, tmp_path, tensor):
    model = from_pretrained(folders[1])
    with torch.no_grad():
        model.state_dict()[tensor].view(-1)[7 if "bias" not in tensor else 0] += 1
    with pytest.raises(ValueError, match=f"weights of words: tensor '{tensor}'"):
        certify(folders[0], save_pretrained(model, tmp_path / "other"))


def test_two_equal_models_and_two_in_the_wrong_order_are_refused(folders):
    original, edited, without = folders
    with pytest.raises(ValueError, match="no removal to certify"):
        certify(original, original)
    for later in (edited, without):
        with pytest.raises(ValueError, match="words of the original are gone"):
            certify(later, original)
