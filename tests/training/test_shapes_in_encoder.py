"""An encoder that gets orthographic features gets the same ones wherever sentences are read."""

import torch

from lexical_sae.data import TaggedSplit
from lexical_sae.inference.word_decisions import read_words, words_of
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import TAG
from lexical_sae.training.loop import Trainer
from lexical_sae.training.settings import TrainingConfig
from lexical_sae.training.tasks import positions
from tests import tiny

SENTENCES = (
    ("The", "bank", "is", "GOOD"),
    ("a", "film", "in", "Bank", "city"),
    tuple(["Bank", "film", "dogs", "City"] * 10),
)
SPLIT = TaggedSplit(SENTENCES, tuple(("O",) * len(words) for words in SENTENCES))
MOST_TOKENS = 16


def tagger_with_shapes():
    settings = {"gate": "drelu", "shapes": {"in_encoder": True}, "max_length": MOST_TOKENS}
    model = tiny.model(ModelConfig.model_validate(settings)).eval()
    torch.nn.init.normal_(model.shape_vectors)
    return model


def task_of(model, shapes):
    return positions(model.tokenizer, SPLIT, model.labels[TAG], MOST_TOKENS, shapes)[0]


def decided(model, only=None):
    """The strengths of words at each place."""
    rows = words_of(model, SENTENCES)
    return {
        place: activations
        for read in read_words(model, SENTENCES, rows, only=only)
        for place, activations in zip(read.places, read.state.code.dense(), strict=True)
    }


def test_training_reads_sentences_as_tagging_does():
    model = tagger_with_shapes()
    rows = words_of(model, SENTENCES)
    assert len(rows.texts) > len(SENTENCES)
    with torch.no_grad():
        found = task_of(model, model.shapes).encode(model, range(len(rows.texts))).sparse_vector
    places = [
        (rows.sentences[row], word) for row in range(len(rows.texts)) for _, word in sorted(rows.first_tokens(row))
    ]
    wanted = decided(model)
    assert len(wanted) == sum(map(len, SENTENCES))
    torch.testing.assert_close(found, torch.stack([wanted[place] for place in places]))


def test_one_word_alone_is_read_as_among_all():
    model = tagger_with_shapes()
    wanted = decided(model)
    for place in ((0, 1), (1, 1), (2, 13)):
        torch.testing.assert_close(decided(model, only={place})[place], wanted[place])


def test_words_that_are_read_in_another_row_have_their_shapes_in_this_one():
    model = tagger_with_shapes()
    rows = words_of(model, SENTENCES)
    (*_, long) = range(len(rows.texts))
    known = rows.at_first_tokens([long], lambda sentence: model.shapes.describe(SENTENCES[sentence]))[0]
    elsewhere = set(rows.standing[long]) - set(rows.word_ids[long])
    assert elsewhere
    capital = model.config.shapes.names.index("is capitalised")
    for position, word in enumerate(rows.standing[long]):
        written = word is not None and SENTENCES[rows.sentences[long]][word].istitle()
        assert bool(known[position, capital]) == written


def test_vectors_of_shapes_learn_at_the_rate_of_the_encoder():
    model = tagger_with_shapes()
    before = model.shape_vectors.detach().clone()
    settings = TrainingConfig(max_epochs=2, batch_size=4, learning_rate=1e-3, warmup_fraction=0.5)
    task = task_of(model, model.shapes)
    trainer = Trainer(model, task, task, settings)
    groups = {group.name: group for group in trainer.steps.parameter_groups(1e-3)}
    assert any(p is model.shape_vectors for p in groups["encoder"].params)
    trainer.run()
    assert not torch.equal(model.shape_vectors, before)
