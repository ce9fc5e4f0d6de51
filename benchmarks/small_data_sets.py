"""Pools of labelled texts to draw few rows from, with test texts: for `benchmarks.small_data`."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from safetensors.torch import load_file, save_file
from torch import Tensor

from lexical_sae.data import TextSplit, load_text_dataset
from lexical_sae.data.batches import tokenize
from lexical_sae.data.sampling import stratified_subsample
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.training.baselines.frozen import mean_states
from lexical_sae.training.folds import containing_texts

ENCODER = "bundled:minilm"
MAX_LENGTH = 128
FEWEST_TOKENS = 7
"""Of a sentence of SST-2, special tokens included."""
MOST_SENTENCES = 3000
TICKET_ROWS = 3122
TOPICS = {
    "cash": ("cash", "atm"),
    "exchange": ("exchange", "currency", "currencies", "fiat"),
    "top-up": ("top_up", "topping"),
    "transfer": ("transfer", "beneficiary", "receiving"),
    "refund": ("refund",),
    "secrets": ("pin", "passcode"),
    "identity": ("verify", "identity"),
    "loss": ("lost", "compromised", "swallowed", "stolen"),
    "virtual card": ("virtual", "disposable"),
    "card payment": ("payment", "extra_charge", "charged"),
    "delivery": ("arrival", "delivery", "getting_spare", "order_physical", "linking"),
    "account": ("edit_personal", "terminate", "age_limit", "country", "automatic"),
}
"""Twelve topics of support tickets: intents of banking77 whose names contain one of these; the first topic counts."""


@dataclass(frozen=True)
class Pool:
    """Texts to draw training rows from, test texts, and the frozen encoder's mean state of each."""

    name: str
    labels: tuple[str, ...]
    train: TextSplit
    test: TextSplit
    train_states: Float[Tensor, "T E"]
    test_states: Float[Tensor, "U E"]

    def draw(self, rows: int, draw: int) -> list[int]:
        """Rows to train on, so many of each class; 0 takes all, of `tickets` the 3,122 of a draw."""
        chance = np.random.default_rng([draw, rows])
        labels = np.asarray(self.train.labels)
        if rows:
            of_class = (chance.permutation(np.flatnonzero(labels == c))[:rows] for c in range(len(self.labels)))
            return chance.permutation(np.concatenate(list(of_class))).tolist()
        if self.name == "tickets":
            return stratified_subsample(self.train.labels, TICKET_ROWS, chance)
        return chance.permutation(len(labels)).tolist()


def load_pool(name: str, test_texts: int, kept: Path) -> Pool:
    """A set by name, with at most so many test texts, always the same; kept in a file, read again the next time."""
    if kept.is_file():
        found = json.loads(kept.read_text())
        train, test = (TextSplit(tuple(texts), tuple(labels)) for texts, labels in found["splits"])
        states = load_file(kept.with_suffix(".safetensors"))
        return Pool(name, tuple(found["labels"]), train, test, states["train"], states["test"])
    pool = _read_pool(name, test_texts)
    save_file({"train": pool.train_states, "test": pool.test_states}, kept.with_suffix(".safetensors"))
    splits = [(split.texts, split.labels) for split in (pool.train, pool.test)]
    kept.write_text(json.dumps({"labels": pool.labels, "splits": splits}))
    return pool


def _read_pool(name: str, test_texts: int) -> Pool:
    dataset = load_text_dataset("banking77" if name == "tickets" else name)
    labels, test = dataset.label_names, dataset.test
    # Which rows validate is the contenders' own business.
    given = (dataset.train, dataset.validation)
    texts = tuple(text for split in given for text in split.texts)
    train = TextSplit(texts, tuple(label for split in given for label in split.labels))
    if name == "tickets":
        train, test = (_by_topic(split, labels) for split in (train, test))
        labels = tuple(TOPICS)
    if name == "sst2":
        train = _sentences(train)
    if len(test) > test_texts:
        test = test.take(sorted(np.random.default_rng(1).permutation(len(test))[:test_texts].tolist()))
    encoder = load_backbone(ENCODER, reads_logits=False).eval()
    train_states, test_states = (mean_states(encoder, split.texts, MAX_LENGTH) for split in (train, test))
    return Pool(name, labels, train, test, train_states, test_states)


def _by_topic(split: TextSplit, intents: tuple[str, ...]) -> TextSplit:
    """The texts whose intent belongs to a topic."""
    found = [
        next((number for number, parts in enumerate(TOPICS.values()) if any(part in intent for part in parts)), None)
        for intent in intents
    ]
    kept = [
        (text, topic)
        for text, label in zip(split.texts, split.labels, strict=True)
        if (topic := found[label]) is not None
    ]
    texts, topics = zip(*kept, strict=True)
    return TextSplit(texts, topics)


def _sentences(split: TextSplit) -> TextSplit:
    """Whole sentences, some of them, drawn once: phrases inside a longer text are left out."""
    tokenizer = load_backbone(ENCODER, reads_logits=False).tokenizer
    ids = tokenize(tokenizer, split.texts, MAX_LENGTH).ids
    whole = [row for row, other in enumerate(containing_texts(ids)) if row == other and len(ids[row]) >= FEWEST_TOKENS]
    return split.take(np.random.default_rng(0).permutation(whole)[:MOST_SENTENCES].tolist())
