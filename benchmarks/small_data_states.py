"""Few training rows, many draws: `python -m benchmarks.small_data_states sst2 --rows 8 16 64 --draws 10 --keep FOLDER`.

The rows and test texts of `benchmarks.small_data`, but the encoder reads every text of the set once, and the table is
made of what was read by the functions that training uses: a draw takes seconds of processor time. Beside the frozen
encoder with logistic regression: the table with mean states as vectors (`plain`), with vectors that add up (`table`),
and with the training texts that were not drawn, 5,000 at most, as unlabelled ones (`unlabelled`). Words that only test
texts have are left out of the tables.
"""

import argparse
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from benchmarks.small_data import points
from benchmarks.small_data_sets import ENCODER, Pool, load_pool
from lexical_sae.config.load import build_config
from lexical_sae.data.batches import TokenizedTexts, batches, tokenize
from lexical_sae.evaluation.intervals import mean_and_interval
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.literal_words import occurrences
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.models.table_head import TableHead
from lexical_sae.runs.inputs import MOST_UNLABELLED
from lexical_sae.training.baselines.frozen import FrozenRegression
from lexical_sae.training.folds import stratified_folds
from lexical_sae.training.literal_vectors import RIDGE, WordVectors, default_activations, vectors_from
from lexical_sae.training.table_choice import candidates, chosen_penalties
from lexical_sae.training.table_fit import LeftOut, TableFitter
from lexical_sae.training.unlabelled import WordsInTexts
from lexical_sae.training.word_prior import prior_map

FROZEN = "frozen encoder"


@dataclass(frozen=True)
class ReadPool:
    """A pool with what the encoder says of every word of its training texts; words are numbered among those met."""

    pool: Pool
    embeddings: Float[Tensor, "V D"]
    prior: Float[Tensor, "D1 E"]
    rows: Int[ndarray, " N"]
    words: Int[ndarray, " N"]
    """The text and the word of every occurrence."""
    states: Float[ndarray, "N E"]
    activations: scipy.sparse.csr_matrix
    tokens: Int[Tensor, " T"]
    test: scipy.sparse.csr_matrix

    def of(self, rows: Int[ndarray, " R"]) -> WordsInTexts:
        """The words of some training texts, as training reads them."""
        size = self.activations.shape[1]
        sums, counts = np.zeros((size, self.states.shape[1])), np.zeros(size, dtype=np.int64)
        for some in np.array_split(np.flatnonzero(np.isin(self.rows, rows)), 1 + len(rows) // 1000):
            words = self.words[some]
            gather = scipy.sparse.csr_matrix((np.ones(len(some)), (words, np.arange(len(some)))), (size, len(some)))
            sums += gather @ self.states[some].astype(np.float64)
            counts += np.bincount(words, minlength=size)
        at = torch.from_numpy(rows)
        means = self.pool.train_states[at]
        read = (torch.from_numpy(sums), torch.from_numpy(counts), self.activations[rows], means, self.tokens[at])
        return WordsInTexts(*read)


def read_pool(name: str, test_texts: int, folder: Path) -> ReadPool:
    """The set; its words are read once and kept in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pool = load_pool(name, test_texts, folder / f"pool.{name}.json")
    settings = build_config({"model": {"name": ENCODER, "context": None}}).model
    model = LexicalSAE.from_backbone(settings, {CLASSIFY: pool.labels}, pool.train.texts).eval()
    train, test = (tokenize(model.tokenizer, split.texts, model.max_length) for split in (pool.train, pool.test))
    kept = folder / f"words.{name}.npz"
    if not kept.is_file():
        np.savez(kept, **_read(model, train))
    found, tokens = np.load(kept), torch.tensor([len(ids) for ids in train.ids])
    by_text, by_test = (default_activations(model, texts) for texts in (train, test))
    met, words = np.unique(found["words"], return_inverse=True)
    assert model.literal is not None
    embeddings = model.literal.embeddings(model.backbone.input_embeddings())[torch.from_numpy(met)].double()
    told = (embeddings, prior_map(model, RIDGE), found["rows"], words, found["states"])
    return ReadPool(pool, *told, by_text[:, met], tokens, by_test[:, met])


@torch.no_grad()
def _read(model: LexicalSAE, texts: TokenizedTexts) -> dict[str, ndarray]:
    """Every occurrence of a word, with its state."""
    assert model.literal is not None
    found = defaultdict(list)
    for batch in batches(texts, 64):
        own = model.own_words(batch.input_ids).masked_fill(~batch.attention_mask, NO_WORD)
        rows, _, words = occurrences(own)
        states = model.encoder_states(batch.input_ids, batch.attention_mask)
        of_words = model.literal.word_states(states, batch.input_ids, own != NO_WORD)
        for name, part in (("rows", batch.rows[rows]), ("words", words), ("states", of_words.half())):
            found[name].append(part.numpy())
    return {name: np.concatenate(parts) for name, parts in found.items()}


def measured(read: ReadPool, count: int, draw: int) -> dict[str, float]:
    """The accuracy of every contender with the rows of a draw."""
    pool, rows = read.pool, np.array(read.pool.draw(count, draw))
    labels, gold = np.asarray(pool.train.labels)[rows], np.asarray(pool.test.labels)
    frozen = FrozenRegression.fit(pool.train_states[torch.from_numpy(rows)].double().numpy(), labels)
    right = {FROZEN: frozen.predict(pool.test_states.double().numpy()) == gold}
    others = np.setdiff1d(np.arange(len(pool.train)), rows)
    others = np.sort(np.random.default_rng(draw).permutation(others)[:MOST_UNLABELLED])
    labelled = read.of(rows)
    known = (read.embeddings, read.prior, labelled)
    vectors = {
        "plain": vectors_from(*known),
        "table": vectors_from(*known, adds_up=True),
        "unlabelled": vectors_from(*known, read.of(others)),
    }
    for name, found in vectors.items():
        right[name] = _decisions(read, labelled.activations, labels, found) == gold
    return {name: float(hits.mean()) for name, hits in right.items()}


def _decisions(
    read: ReadPool, activations: scipy.sparse.csr_matrix, labels: Int[ndarray, " R"], vectors: WordVectors
) -> Int[ndarray, " U"]:
    """What the table of some training texts says of the test texts."""
    targets, classes = torch.from_numpy(labels).long(), len(read.pool.labels)
    fitter = TableFitter(activations, targets, classes, vectors)
    folds = torch.from_numpy(stratified_folds(labels, np.random.default_rng(0)))
    offered = candidates(len(labels), with_context=False)
    choice = chosen_penalties(offered, LeftOut(fitter, folds), targets, folds, None, lambda: None)
    table = fitter.fit(choice.penalties)
    head = TableHead.Config().build(*table.rows.shape)
    rows = head.emptied(table.rows, table.rows).numpy()
    return (read.test @ rows + table.bias.numpy()).argmax(1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy with few training rows, on states that were read once.")
    parser.add_argument("set", help="sst2, banking77, tickets")
    parser.add_argument("--rows", nargs="+", type=int, default=[8, 16, 64], help="per class")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first-draw", type=int, default=0)
    parser.add_argument("--test-texts", type=int, default=1000)
    parser.add_argument("--keep", type=Path, default=Path("results/few"), help="folder for what was read")
    asked = parser.parse_args()
    read = read_pool(asked.set, asked.test_texts, asked.keep)
    print("| set, rows per class | contender | draws | accuracy | against frozen |\n|---|---|---|---|---|", flush=True)
    for count in asked.rows:
        found = [measured(read, count, asked.first_draw + draw) for draw in range(asked.draws)]
        for name in found[0]:
            accuracy = mean_and_interval([one[name] for one in found])
            against = mean_and_interval([one[name] - one[FROZEN] for one in found])
            cells = (f"{asked.set}, {count}", name, str(len(found)), points(accuracy), points(against, "+"))
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
