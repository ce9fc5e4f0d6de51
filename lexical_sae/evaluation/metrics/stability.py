"""Does an explanation stay the same when the text is edited in a way that changes nothing?

Each edited text's explanation is compared with the original's: the label, the ten top-attributed words, and all
contributions. Only edits that reach the model count: most tokenizers do not see a second blank. Another text with the
same predicted label, compared in the same way, shows how alike explanations are anyway.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import regex
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.data.batches import tokenize
from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.collect import read_corpus
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import Subject, sampled
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.progress import OnStep, Step, silent

TOP_WORDS = 10
Edit = Callable[[str], str]
"""The edited text; the text itself where there is nothing to edit."""

_FULL_FORMS = {
    "can't": "cannot",
    "won't": "will not",
    "it's": "it is",
    "that's": "that is",
    "there's": "there is",
    "i'm": "i am",
    "i've": "i have",
    "you're": "you are",
    "they're": "they are",
    "we're": "we are",
}
"""Short forms that have one long form; "he's" may be "he is" or "he has" and is left alone."""
_SHORT = regex.compile(rf"\b(?:{'|'.join(_FULL_FORMS)}|(\w+)n't)\b", regex.IGNORECASE)


def toggle_full_stop(text: str) -> str:
    """Without its final full stop, or with one where there is no mark. Example: `Good film. -> Good film`"""
    bare = text.rstrip()
    if bare.endswith(".") and not bare.endswith(".."):
        return bare[:-1].rstrip()
    return f"{bare}." if bare and (bare[-1].isalnum()) else text


def toggle_capital(text: str) -> str:
    """The first letter in the other case."""
    return text[:1].swapcase() + text[1:]


def widen_blanks(text: str) -> str:
    """Two blanks for one."""
    return text.replace(" ", "  ")


def curl_apostrophes(text: str) -> str:
    """Typographic apostrophes for straight ones. Example: `isn't -> isn’t`"""
    return text.replace("'", "’")


def in_quotation_marks(text: str) -> str:
    """The text in quotation marks."""
    return f'"{text}"' if text.strip() and '"' not in text else text


def write_out(text: str) -> str:
    """Short forms written out. Example: `it's bad, isn't it -> it is bad, is not it`"""
    return _SHORT.sub(lambda found: _FULL_FORMS.get(found[0].casefold(), f"{found[1]} not"), text)


HARMLESS_EDITS: dict[str, Edit] = {
    "full stop": toggle_full_stop,
    "capital": toggle_capital,
    "blanks": widen_blanks,
    "apostrophes": curl_apostrophes,
    "quotation marks": in_quotation_marks,
    "written out": write_out,
}


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
class _Answer:
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
    answers = _explained(model, [*texts, *(edited for _, _, edited in changed)], on_step)
    originals = answers[: len(texts)]
    means = BootstrapMeans(seed=seed)
    seen: dict[str, dict[int, Tensor]] = {name: {} for name in edits}
    for (row, name, _), after in zip(changed, answers[len(texts) :], strict=True):
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


def _explained(model: LexicalSAE, texts: Sequence[str], on_step: OnStep) -> list[_Answer]:
    """The explanation of each text; what is the same to the tokenizer, as many edits are, is read once."""
    tokens = [tuple(ids) for ids in tokenize(model.tokenizer, texts, model.max_length).ids]
    # Edits write words that the texts do not have.
    model = model.opened_to(tokens)
    first_with = {ids: row for row, ids in reversed(list(enumerate(tokens)))}
    distinct = {row: i for i, row in enumerate(sorted(first_with.values()))}
    answers: dict[int, _Answer] = {}
    for batch in read_corpus(model, [texts[row] for row in distinct], on_step=on_step):
        code, predicted = batch.state.code, batch.predicted.tolist()
        ids, contributions = code.ids.cpu(), batch.contributions.cpu().double()
        for i, row in enumerate(batch.rows):
            here = code.text(i)
            answers[row] = _Answer(tuple(batch.token_ids[i]), predicted[i], ids[here], contributions[here])
    return [answers[distinct[first_with[ids]]] for ids in tokens]


def _likeness(before: _Answer, after: _Answer) -> Float[Tensor, " M"]:
    """Same label, overlap of the top-attributed words, and cosine; the last two NaN where neither text has words."""
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


def _partners(originals: Sequence[_Answer], seed: int) -> Iterator[tuple[int, int]]:
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


def _measure(of: Subject) -> StabilityResult:
    def on_step(step: Step) -> None:
        of.on_step(replace(step, task="reading edited texts"))

    _, texts, _ = of.sample.few(of.settings.edited_texts)
    return measure_stability(of.model, texts, seed=of.seed, on_step=on_step)


STABILITY = sampled("stability", StabilityResult, _measure)
