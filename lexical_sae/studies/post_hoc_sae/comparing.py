"""A lexical model beside autoencoders that are fitted to its encoder afterwards.

1. Train and test texts are read twice: once for the pooled hidden state, once for the words.
2. Three dictionaries are fitted to the train states, with as many active features as the model has words.
3. Words and features answer the same questions on the test texts (`lexical_sae.studies.post_hoc_sae.measuring`).
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from lexical_sae.data import TextDataset
from lexical_sae.data.splits import draw
from lexical_sae.evaluation.circuit_words import Rankings
from lexical_sae.evaluation.collect import collect, opened_to_corpus, read_corpus
from lexical_sae.evaluation.metrics.removability import RemovabilityCollector
from lexical_sae.evaluation.text_sample import join_codes
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.report.studies.post_hoc_sae import sae_page
from lexical_sae.report.tables import tables_html
from lexical_sae.studies.post_hoc_sae.fitting import FITTERS, SAESettings
from lexical_sae.studies.post_hoc_sae.measuring import CodeScores, LabelledCodes, compare_codes
from lexical_sae.studies.post_hoc_sae.reconstruction import rebuild_from_words
from lexical_sae.studies.post_hoc_sae.states import document_states
from lexical_sae.utils.cost import with_cost
from lexical_sae.utils.files import write_json, write_text
from lexical_sae.utils.progress import OnStep, silent

RESULTS, PAGE = "sae.json", "sae.html"


def compare_with_saes(
    model: LexicalSAE,
    dataset: TextDataset,
    settings: SAESettings = SAESettings(),
    *,
    state: str = "mean",
    train_texts: int = 5000,
    test_texts: int = 2000,
    on_step: OnStep = silent,
) -> dict[str, Any]:
    """All figures of the comparison as plain data; at most so many train and test texts are read."""
    train, test = draw(dataset.train, train_texts, settings.seed), draw(dataset.test, test_texts, settings.seed)
    # Once for both, so that a word is the same column in their codes.
    model, _ = opened_to_corpus(model, [*train.texts, *test.texts])
    classes = len(dataset.label_names)
    fit_states, held_states = (
        document_states(_encoder(model), model.tokenizer, split.texts, model.max_length, state, on_step=on_step)
        for split in (train, test)
    )
    fit_labels, held_labels = (torch.tensor(split.labels) for split in (train, test))
    fit_words, held_words = (words_of(model, split.texts, on_step) for split in (train, test))
    rebuilt, _ = rebuild_from_words(fit_words, fit_states, held_words)

    def scores(name: str, fit: SparseCode, held: SparseCode, made: torch.Tensor) -> CodeScores:
        return compare_codes(
            name,
            LabelledCodes(fit, fit_labels),
            LabelledCodes(held, held_labels),
            held_states,
            made,
            classes,
            seed=settings.seed,
        )

    codes = [scores("words", fit_words, held_words, rebuilt)]
    active = max(1.0, float(fit_words.counts.double().mean()))
    costs = {}
    for name, fitter in FITTERS.items():
        sae, costs[name] = with_cost(lambda fitter=fitter: fitter(fit_states, active, settings, on_step))
        fit, held = (SparseCode.from_dense(sae.encode(states)) for states in (fit_states, held_states))
        codes.append(scores(name, fit, held, sae(held_states)))
    dense = scores("state", SparseCode.from_dense(fit_states), SparseCode.from_dense(held_states), held_states)
    own = RemovabilityCollector(Rankings(model.head(), settings.seed), seed=settings.seed)
    collect(model, test.texts, [own], on_step=on_step)
    return {
        "train_texts": len(train),
        "test_texts": len(test),
        "state": state,
        "width": held_states.shape[1],
        "settings": settings.model_dump(mode="json"),
        "codes": [code.as_dict() for code in codes],
        "fitting": costs,
        "dense": asdict(dense.accuracy),
        "model": asdict(own.result()),
    }


def write_comparison(results: dict[str, Any], place: Path) -> None:
    """Leave `sae.json` and `sae.html` in a folder."""
    write_json(place / RESULTS, results)
    write_text(place / PAGE, tables_html(sae_page(results)))


def words_of(model: LexicalSAE, texts: Sequence[str], on_step: OnStep = silent) -> SparseCode:
    """The active words of all texts as one code, in their order, on the CPU."""
    parts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    for batch in read_corpus(model, texts, on_step=on_step):
        code = batch.state.code
        for i, row in enumerate(batch.rows):
            here = code.text(i)
            parts[row] = code.ids[here].cpu(), code.values[here].cpu()
    return join_codes([parts[row] for row in range(len(texts))], len(model.dimensions))


def _encoder(model: LexicalSAE) -> Any:
    """The encoder's states of token ids on any device; nothing is dropped out."""
    model.eval()
    device = model.gate.closed.device
    return lambda ids, mask: model.encoder_states(ids.to(device), mask.to(device)).cpu()
