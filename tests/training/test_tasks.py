import dataclasses

import torch

from lexical_sae.data.batches import tokenize
from lexical_sae.training.tasks import Documents
from tests import tiny
from tests.tiny import BAD, GOOD


def encoded(model, texts):
    labels = torch.arange(len(texts)) % 3
    return Documents(tokenize(model.tokenizer, texts, 16), labels).encode(model, range(len(texts)))


def test_padding_does_not_count_in_a_documents_state():
    model = tiny.model()
    short, long = "good", "a very good movie and the acting was wonderful"
    together, alone = encoded(model, [short, long]), encoded(model, [short])
    torch.testing.assert_close(together.states[0], alone.states[0], rtol=1e-4, atol=1e-5)


def test_a_sample_is_some_of_the_rows_and_each_of_them_whole():
    model = tiny.model()
    whole = encoded(model, GOOD + BAD)
    whole = dataclasses.replace(whole, labels=torch.arange(8))
    some = whole.sample(3)
    assert len(set(some.labels.tolist())) == 3
    for name in ("sparse_vector", "logits", "own", "states"):
        assert torch.equal(getattr(some, name), getattr(whole, name)[some.labels]), name
    for ours, theirs in zip(vars(some.gate).values(), vars(whole.gate).values(), strict=True):
        assert torch.equal(ours, theirs[some.labels])
    assert whole.sample(8) is whole
    assert len({tuple(whole.sample(3).labels.tolist()) for _ in range(20)}) > 1
