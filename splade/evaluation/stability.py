"""Does an explanation stay the same when the text is edited in a way that changes nothing?

Each edited text's explanation is compared with the original's: the label, the ten most telling words, and all
contributions. Only edits that reach the model count: most tokenizers do not see a second blank. Another text with the
same predicted label, compared in the same way, shows how alike explanations are anyway.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from splade.evaluation.bootstrap import BootstrapMeans
from splade.evaluation.collect import read_corpus
from splade.evaluation.harmless_edits import HARMLESS_EDITS, Edit
from splade.evaluation.intervals import Interval
from splade.models.lexical_sae import LexicalSAE
from splade.progress import OnStep, silent

TOP_WORDS = 10


@dataclass(frozen=True)
class Likeness:
    """How alike two explanations are, over pairs of texts."""

    same_label: Interval
    top_words: Interval
    """Overlap (Jaccard) of the ten words with the largest |contribution|."""
    contributions: Interval
    """Cosine of the contributions to the original's label."""


@dataclass(frozen=True)
class EditStability:
    """Explanations after one kind of edit."""

    edit: str
    texts: int
    """Texts whose tokens the edit changed; the others' explanations cannot change."""
    likeness: Likeness


@dataclass(frozen=True)
class StabilityResult:
    """Explanations before and after harmless edits."""

    texts: int
    all_edits: Likeness
    """Over all edits that changed a text's tokens, each text counting once."""
    edits: tuple[EditStability, ...]
    other_texts: Likeness
    """Another text with the same predicted label instead of an edit."""


@dataclass(frozen=True)
class _Told:
    """The explanation of one text."""

    tokens: tuple[int, ...]
    predicted: int
    ids: Int[Tensor, " K"]
    contributions: Float[Tensor, "K C"]


def measure_stability(
    model: LexicalSAE,
    texts: Sequence[str],
    edits: Mapping[str, Edit] = HARMLESS_EDITS,
    seed: int = 0,
    on_step: OnStep = silent,
) -> StabilityResult:
    """Compare explanations of the texts with those of their edits."""
    changed = [(row, name, edit(text)) for name, edit in edits.items() for row, text in enumerate(texts)]
    changed = [(row, name, edited) for row, name, edited in changed if edited != texts[row]]
    told = _explained(model, [*texts, *(edited for _, _, edited in changed)], on_step)
    originals = told[: len(texts)]
    means = BootstrapMeans(seed=seed)
    seen: dict[str, dict[int, Tensor]] = {name: {} for name in edits}
    for (row, name, _), after in zip(changed, told[len(texts) :], strict=True):
        if after.tokens != originals[row].tokens:
            seen[name][row] = _likeness(originals[row], after)
    for name, found in seen.items():
        _add(means, name, found)
    per_text: dict[int, list[Tensor]] = {}
    for row, value in (pair for found in seen.values() for pair in found.items()):
        per_text.setdefault(row, []).append(value)
    _add(means, "all", {row: torch.stack(values).mean(0) for row, values in per_text.items()})
    others = {row: _likeness(originals[row], originals[other]) for row, other in _partners(originals, seed)}
    _add(means, "other", others)
    return StabilityResult(
        texts=len(texts),
        all_edits=_summary(means, "all"),
        edits=tuple(EditStability(name, len(found), _summary(means, name)) for name, found in seen.items() if found),
        other_texts=_summary(means, "other"),
    )


def _explained(model: LexicalSAE, texts: Sequence[str], on_step: OnStep) -> list[_Told]:
    told: dict[int, _Told] = {}
    for batch in read_corpus(model, texts, on_step=on_step):
        code, predicted = batch.state.code, batch.predicted.tolist()
        ids, contributions = code.ids.cpu(), batch.contributions.cpu().double()
        for i, row in enumerate(batch.rows):
            here = code.text(i)
            told[row] = _Told(tuple(batch.token_ids[i]), predicted[i], ids[here], contributions[here])
    return [told[row] for row in range(len(texts))]


def _likeness(before: _Told, after: _Told) -> Float[Tensor, " M"]:
    """Same label, overlap of the most telling words, and cosine; the last two NaN where neither text has words."""
    ours, theirs = (one.contributions[:, before.predicted] for one in (before, after))
    tops = [
        set(one.ids[values.abs().argsort(descending=True, stable=True)[:TOP_WORDS]].tolist())
        for one, values in ((before, ours), (after, theirs))
    ]
    union, length = tops[0] | tops[1], float(ours.norm() * theirs.norm())
    shared = (before.ids[:, None] == after.ids[None]).to(ours.dtype)
    dot = float(ours @ shared @ theirs)
    one_is_silent = bool(len(ours)) != bool(len(theirs))
    cosine = dot / length if length else 0.0 if one_is_silent else torch.nan
    same = float(before.predicted == after.predicted)
    overlap = len(tops[0] & tops[1]) / len(union) if union else torch.nan
    return torch.tensor([same, overlap, cosine], dtype=torch.float64)


def _partners(originals: Sequence[_Told], seed: int) -> Iterator[tuple[int, int]]:
    """For each text another one with the same predicted label, if there is one."""
    for row, own in enumerate(originals):
        alike = [i for i, other in enumerate(originals) if i != row and other.predicted == own.predicted]
        if alike:
            yield row, alike[int(np.random.default_rng([seed, 5, row]).integers(len(alike)))]


def _add(means: BootstrapMeans, name: str, found: Mapping[int, Tensor]) -> None:
    if found:
        same, words, cosine = torch.stack(list(found.values())).unbind(1)
        figures = {f"{name} label": same, f"{name} words": words, f"{name} contributions": cosine}
        means.update(list(found), figures)


def _summary(means: BootstrapMeans, name: str) -> Likeness:
    return Likeness(means.share(f"{name} label"), means.share(f"{name} words"), means[f"{name} contributions"])
