import pytest
import torch

from lexical_sae.training import word_prior
from lexical_sae.training.literal_vectors import word_vectors
from lexical_sae.training.word_prior import prior_map
from tests import tiny
from tests.literal import literal_model
from tests.training.test_word_table import documents


def test_the_prior_predicts_what_the_encoder_says_of_words_read_alone():
    model = literal_model()
    tokens = model.dimensions.vocabulary.word_mask.nonzero().flatten()
    frame = torch.tensor(tiny.wordpiece()("")["input_ids"]).expand(len(tokens), -1)
    ids = torch.cat([frame[:, :1], tokens[:, None], frame[:, 1:]], dim=1)
    with torch.no_grad():
        states = model.encoder_states(ids, torch.ones_like(ids, dtype=torch.bool))[:, 1].double()
    found = prior_map(model, 1e-9)
    predicted = model.backbone.input_embeddings()[tokens].double() @ found[:-1] + found[-1]
    unexplained = (predicted - states).square().sum() / (states - states.mean(0)).square().sum()
    # Thirty-two numbers of an embedding, and a few words more: most of it is linear.
    assert unexplained < 0.6
    held = prior_map(model, 1e6)
    assert held.abs().max() < 0.1 * found.abs().max()


def test_a_word_never_met_has_a_vector_even_after_one_text():
    model = literal_model()
    vectors = word_vectors(model, documents(model, ["a good film"], [0]))
    church, muslim = tiny.wordpiece().convert_tokens_to_ids(["church", "muslim"])
    assert vectors.counts[[church, muslim]].tolist() == [0, 0]
    assert (vectors.vectors[church] - vectors.vectors[muslim]).norm() > 0.1


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """A cache folder, and every vocabulary large enough to be worth keeping."""
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path))
    monkeypatch.setattr(word_prior, "WORDS", 5)
    return tmp_path


def refused(*_):
    raise AssertionError("words are read again")


def test_the_prior_is_read_once_for_an_encoder(kept, monkeypatch):
    model = literal_model().eval()
    first = prior_map(model, 1.0)
    assert [path.name[:10] for path in kept.iterdir()] == ["word-prior"]
    with monkeypatch.context() as context:
        context.setattr(word_prior, "_fitted", refused)
        assert torch.equal(prior_map(model, 1.0), first)
    # Another ridge, and other weights, are other priors.
    assert not torch.equal(prior_map(model, 2.0), first)
    with torch.no_grad():
        for weights in model.backbone.encoder.parameters():
            weights += 0.1 * torch.randn_like(weights)
    assert not torch.equal(prior_map(model, 1.0), first)
    assert len(list(kept.iterdir())) == 3


def test_a_damaged_or_unusable_cache_costs_time_and_nothing_else(kept, monkeypatch, caplog):
    model = literal_model().eval()
    first = prior_map(model, 1.0)
    (folder,) = kept.iterdir()
    (folder / word_prior.FILE).write_bytes(b"no tensors")
    assert torch.equal(prior_map(model, 1.0), first)
    assert "is not kept in the cache" in caplog.text
    (kept / "a file").write_text("")
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(kept / "a file"))
    assert torch.equal(prior_map(model, 1.0), first)


def test_small_vocabularies_leave_nothing_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path))
    prior_map(literal_model().eval(), 1.0)
    assert not list(tmp_path.iterdir())


def test_words_are_read_without_dropout():
    model = literal_model()
    model.train()
    first, second = (word_vectors(model, documents(model, ["a good film"], [0])) for _ in range(2))
    assert torch.equal(first.vectors, second.vectors)
    assert model.training
