import torch

from lexical_sae.training.word_prior import prior_map
from lexical_sae.training.word_table import word_vectors
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
