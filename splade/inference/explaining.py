"""Why each text got its label."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, overload

from jaxtyping import Float
from torch import Tensor

from splade.explanation import ABSTAIN, Cause, WordContribution
from splade.inference.causes import find_causes
from splade.inference.methods import METHODS, Shares
from splade.inference.places import Place, Places, find_places
from splade.inference.question import Question
from splade.inference.reading import ReadTexts, answers, is_one_text
from splade.inference.unusual import unusual
from splade.mechanistic.exact import Removal, leave_one_out
from splade.models.lexical_sae import CLASSIFY, LexicalSAE
from splade.report.limits import limits
from splade.report.shown_explanation import ShownExplanation


@overload
def explain(  # pyright: ignore[reportOverlappingOverload]
    model: LexicalSAE,
    texts: str,
    target: str | int | None = None,
    contrast: str | int | None = None,
    method: str = "dla",
    *,
    effects: bool = True,
    places: bool = True,
    all_tokens: bool = False,
    abstain: float | None = None,
    causes: bool = False,
    merge_inflections: bool = False,
    batch_size: int = 32,
) -> ShownExplanation: ...
@overload
def explain(
    model: LexicalSAE,
    texts: Iterable[str],
    target: str | int | None = None,
    contrast: str | int | None = None,
    method: str = "dla",
    *,
    effects: bool = True,
    places: bool = True,
    all_tokens: bool = False,
    abstain: float | None = None,
    causes: bool = False,
    merge_inflections: bool = False,
    batch_size: int = 32,
) -> list[ShownExplanation]: ...
def explain(
    model: LexicalSAE,
    texts: Any,
    target: str | int | None = None,
    contrast: str | int | None = None,
    method: str = "dla",
    *,
    effects: bool = True,
    places: bool = True,
    all_tokens: bool = False,
    abstain: float | None = None,
    causes: bool = False,
    merge_inflections: bool = False,
    batch_size: int = 32,
) -> ShownExplanation | list[ShownExplanation]:
    """The explanation of one text, or a list with one for each text of an iterable.

    `target` is the label to speak for: the most probable one by default. `contrast` asks why the target and not that
    label; with a contrast and no target, the most probable of the other labels is the target. Labels are given by name
    or place. `method` is dla, path or leave_one_out (`splade.inference.methods`). `effects=False` leaves out what
    single removals do, `places=False` where in the text words stand; both make it quicker. `words` of an explanation
    always has every active dimension; what it prints, draws and writes as JSON sums word pieces and symbols in one row,
    or names them with `all_tokens`, and shows forms of one word (film, films) as one with `merge_inflections`. With
    `abstain`, an accuracy such as 0.95, the label is "abstain" for unusual texts and where fewer of the validation
    texts were right at the same confidence.

    `causes=True` measures, for models with literal words, which other word of the text causes each shift by context
    (`WordContribution.cause`): a reading of the text per word around it, and only for texts that have a shift.

    Example: `explain(model, "a warm, funny film", contrast="negative").words[0]`
    """
    shown = {"all_tokens": all_tokens, "merge_inflections": merge_inflections}
    asked = {"effects": effects, "places": places, "causes": causes, "abstain": abstain}
    question = Question.of(model, target, contrast, method, **asked, **shown)
    explanations = list(_explanations(model, texts, question, batch_size))
    return explanations[0] if is_one_text(texts) else explanations


def explain_stream(
    model: LexicalSAE,
    texts: Iterable[str],
    target: str | int | None = None,
    contrast: str | int | None = None,
    method: str = "dla",
    *,
    effects: bool = True,
    places: bool = True,
    all_tokens: bool = False,
    abstain: float | None = None,
    causes: bool = False,
    merge_inflections: bool = False,
    batch_size: int = 32,
) -> Iterator[ShownExplanation]:
    """Explanations one by one, as `explain` gives them; only a few batches of texts are read ahead and held.

    Example: `for why in explain_stream(model, open("reviews.txt")): print(why.to_json())`
    """
    shown = {"all_tokens": all_tokens, "merge_inflections": merge_inflections}
    asked = {"effects": effects, "places": places, "causes": causes, "abstain": abstain}
    question = Question.of(model, target, contrast, method, **asked, **shown)
    return _explanations(model, texts, question, batch_size)


def _explanations(model: LexicalSAE, texts: Any, question: Question, batch_size: int) -> Iterator[ShownExplanation]:
    return answers(model, texts, batch_size, lambda read: explain_batch(question, read))


def explain_batch(question: Question, read: ReadTexts) -> Iterator[ShownExplanation]:
    """The explanations of a batch."""
    model = read.model
    head, logits, labels = model.head(CLASSIFY), read.state.logits, model.labels[CLASSIFY]
    targets = question.targets(logits)
    direction = question.direction(logits, targets)
    needs_removal = question.effects or question.method == "leave_one_out"
    removal = leave_one_out(head, read.state) if needs_removal else None
    shares = METHODS[question.method](head, read.state, direction, removal)
    places = find_places(model, read, shares) if question.places else [None] * len(read.texts)
    causes = find_causes(read) if question.causes else {}
    effects = _effects(read, direction, removal if question.effects else None, labels)
    words = _words(model, read, shares, places, effects, causes)
    probabilities = logits.softmax(-1).tolist()
    warnings = unusual(model.calibration, read)
    decided, explained = logits.argmax(-1).tolist(), (direction * logits).sum(-1).tolist()
    rows = zip(shares.biases.tolist(), shares.identity_errors.tolist(), targets.tolist(), explained, strict=True)
    for row, (bias, error, target, total) in enumerate(rows):
        place, confidence = places[row], probabilities[row][decided[row]]
        abstained = question.abstention and question.abstention.reason(confidence, warnings[row])
        made = ShownExplanation(
            text=read.texts[row],
            label=ABSTAIN if abstained else labels[decided[row]],
            probability=confidence,
            words=next(words),
            bias=bias,
            identity_error=error,
            tokens_cut=read.encoded[row].tokens_cut,
            probabilities=tuple(zip(labels, probabilities[row], strict=True)),
            target=labels[target],
            contrast=None if question.contrast is None else labels[question.contrast],
            method=question.method,
            explained=total,
            spans=place.spans if place else None,
            whole_text=place.whole_text if place else None,
            all_tokens=question.all_tokens,
            warnings=warnings[row],
            abstained=abstained,
            merge_inflections=question.merge_inflections,
        )
        yield replace(made, not_explained=limits(made, _mute(model, read.token_ids[row])))


def _mute(model: LexicalSAE, token_ids: Sequence[int]) -> list[str]:
    """Words of a text that are cut into parts and have no dimension, where no part of a word may speak."""
    parted = model.neighbourhood
    if parted is None:
        return []
    words = (str(model.tokenizer.decode(word)).strip() for word in parted.mute_words(token_ids))
    return [word for word in words if any(map(str.isalpha, word))]


class Effect(NamedTuple):
    """What removing one word alone does."""

    without: float | None = None
    region_changed: bool | None = None
    label_without: str | None = None


def _effects(
    read: ReadTexts, direction: Float[Tensor, "B C"], removal: Removal | None, labels: tuple[str, ...]
) -> list[Effect]:
    """What single removals do, in the order of the code."""
    if removal is None:
        return [Effect()] * len(read.state.code.ids)
    left = removal.effects.logits_without(read.state.logits).argmax(-1).tolist()
    falls, changed = removal.effects.towards(direction).tolist(), removal.region_changed.tolist()
    return [Effect(*effect) for effect in zip(falls, changed, [labels[int(i)] for i in left], strict=True)]


def _words(
    model: LexicalSAE,
    read: ReadTexts,
    shares: Shares,
    places: Sequence[Places | None],
    effects: Sequence[Effect],
    causes: Mapping[int, Cause],
) -> Iterator[tuple[WordContribution, ...]]:
    """The active words of each text, the most telling first."""
    code = read.state.code
    values, said, bounds = code.values.tolist(), shares.contributions.tolist(), code.offsets.tolist()
    named = [model.dimensions[i] for i in code.ids.tolist()]
    # A linear head gives a word its contribution in proportion to its activation.
    ratios = None if code.defaults is None else (code.defaults / code.values).tolist()

    def word(entry: int, of_word: Mapping[str, Place]) -> WordContribution:
        name, kind = named[entry].name, named[entry].kind
        start, end, is_expansion = of_word.get(name, Place())
        default = None if ratios is None else said[entry] if ratios[entry] == 1 else said[entry] * ratios[entry]
        place, moved = (start, end, is_expansion), {"default": default, "cause": causes.get(entry)}
        return WordContribution(name, kind, values[entry], said[entry], *place, *effects[entry], **moved)

    for row, place in enumerate(places):
        here = sorted(range(bounds[row], bounds[row + 1]), key=lambda entry: -abs(said[entry]))
        yield tuple(word(entry, place.of_word if place else {}) for entry in here)
