"""Why each text got its label."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, overload

from jaxtyping import Float
from torch import Tensor

from lexical_sae.explanation import ABSTAIN, Cause, WordContribution
from lexical_sae.inference.causes import find_causes
from lexical_sae.inference.methods import METHODS, Shares
from lexical_sae.inference.places import Place, Places, find_literal_words, find_places
from lexical_sae.inference.predicting import predict
from lexical_sae.inference.question import Question
from lexical_sae.inference.reading import ReadTexts, answers, is_one_text
from lexical_sae.inference.unusual import unusual
from lexical_sae.mechanistic.exact import Removal, leave_one_out
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.outputs import Labels
from lexical_sae.report.explanation.limits import limits
from lexical_sae.report.explanation.shown import ShownExplanation, ShownExplanations


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
) -> ShownExplanations: ...
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
) -> ShownExplanation | ShownExplanations:
    """The explanation of one text, or a list with one for each text of an iterable.

    Args:
        model: The classifier.
        texts: A string, or an iterable of strings.
        target: The label to explain, by name or place; the most probable one by default. Where texts have any number of
            labels, contributions are to its own logit; by default the one that is furthest above its threshold.
        contrast: The label to contrast it with. Without a target, the most probable of the other labels is explained.
        method: `dla`, `path` or `leave_one_out` (`lexical_sae.inference.methods`).
        effects: Whether to compute the effect of removing each word; without it, explaining is quicker.
        places: Whether to find where in the text each word is; without it, explaining is quicker.
        causes: Whether to measure, for models with literal words, which other word of the text causes each shift by
            context. This reads the text once per word around it, and only texts that have a shift.
        abstain: An accuracy such as 0.95. The label is "abstain" for unusual texts, and where fewer of the validation
            texts were right at the same confidence.
        all_tokens: Whether views list word pieces and symbols; otherwise one row sums them. `words` always has every
            active dimension.
        merge_inflections: Whether views show the forms of a word (film, films) as one.
        batch_size: Texts per batch.

    Returns:
        One `Explanation` for a string, a list of them for an iterable.

    Example: `explain(model, "a warm, funny film", contrast="negative").words[0]`
    """
    shown = {"all_tokens": all_tokens, "merge_inflections": merge_inflections}
    asked = {"effects": effects, "places": places, "causes": causes, "abstain": abstain}
    question = Question.of(model, target, contrast, method, **asked, **shown)
    explanations = ShownExplanations(_explanations(model, texts, question, batch_size))
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
    """Explanations one by one; only a few batches of texts are read ahead and held.

    Args:
        model: The classifier.
        texts: An iterable of strings.
        target, contrast, method, effects, places, causes, abstain, all_tokens, merge_inflections, batch_size: As for
            `explain`.

    Returns:
        An iterator over the explanations, in the order of the texts.

    Example: `for why in explain_stream(model, open("reviews.txt")): print(why.to_json())`
    """
    shown = {"all_tokens": all_tokens, "merge_inflections": merge_inflections}
    asked = {"effects": effects, "places": places, "causes": causes, "abstain": abstain}
    question = Question.of(model, target, contrast, method, **asked, **shown)
    return _explanations(model, texts, question, batch_size)


def explain_decided(model: LexicalSAE, texts: Iterable[str], **question: Any) -> Iterator[ShownExplanation]:
    """An explanation for every label that is decided for; where there is none, for the one nearest to its threshold.

    For models of any number of labels per text. Others give a text one decision, and so one explanation.

    Args:
        model: The model.
        texts: An iterable of strings.
        question: The other arguments of `explain`, but for the target.
    """
    if not isinstance(model.output, Labels):
        yield from explain_stream(model, texts, **question)
        return
    for text in texts:
        (decided,) = predict(model, [text])
        for label in decided or (None,):
            yield explain(model, text, target=label, **question)


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
    places, of_words = _places(question, read, shares)
    causes = find_causes(read) if question.causes else {}
    effects = _effects(read, direction, removal if question.effects else None)
    words = _words(model, read, shares, of_words, effects, causes)
    output, offset = model.output, model.output.offset()
    probabilities = model.probabilities(logits).tolist() if output.is_choice else [[]] * len(logits)
    warnings = unusual(model.calibration, read)
    decided, explained = _decisions(model, logits), (direction * logits).sum(-1).tolist()
    rows = zip(shares.biases.tolist(), shares.identity_errors.tolist(), targets.tolist(), explained, strict=True)
    for row, (bias, error, target, total) in enumerate(rows):
        place, confidence = places[row], output.told(probabilities[row], target)
        abstained = question.abstention and question.abstention.reason(confidence or 0.0, warnings[row])
        made = ShownExplanation(
            text=read.texts[row],
            label=ABSTAIN if abstained else decided[row],
            probability=confidence,
            words=next(words),
            bias=bias + offset,
            identity_error=error,
            tokens_cut=read.encoded[row].tokens_cut,
            probabilities=tuple(zip(labels, probabilities[row], strict=True)) if output.is_choice else (),
            target=labels[target],
            contrast=None if question.contrast is None else labels[question.contrast],
            method=question.method,
            explained=total + offset,
            spans=place.spans if place else None,
            whole_text=place.whole_text if place else None,
            all_tokens=question.all_tokens,
            warnings=warnings[row],
            abstained=abstained,
            merge_inflections=question.merge_inflections,
            output=output.kind,
        )
        if question.words_only:
            yield made
        else:
            yield replace(made, not_explained=limits(made, _oov(model, read.token_ids[row]), _unread(read, row)))


def _places(
    question: Question, read: ReadTexts, shares: Shares
) -> tuple[Sequence[Places | None], Sequence[Mapping[str, Place]]]:
    """The places of each text as far as they are asked for, and where its words stand."""
    nothing = [None] * len(read.texts)
    if not question.places:
        return nothing, [{}] * len(read.texts)
    if question.words_only and read.model.literal is not None:
        return nothing, find_literal_words(read.model, read)
    places = find_places(read.model, read, shares)
    return places, [each.of_word for each in places]


def _oov(model: LexicalSAE, token_ids: Sequence[int]) -> list[str]:
    """Multi-piece words of a text without a dimension, where no part of a word may activate anything."""
    parted = model.neighbourhood
    if parted is None:
        return []
    words = (str(model.tokenizer.decode(word)).strip() for word in parted.oov_words(token_ids))
    return [word for word in words if any(map(str.isalpha, word))]


def _unread(read: ReadTexts, row: int) -> list[str]:
    """Words of a text that are the unknown token: all literal words but these have a feature."""
    if read.model.literal is None:
        return []
    layout, unknown = read.layouts[row], read.model.tokenizer.unk_token_id
    tokens = zip(layout.token_ids, layout.token_words, strict=True)
    words = (layout.written(layout.word_spans[word]) for token, word in tokens if token == unknown and word is not None)
    return [word for word in words if any(map(str.isalnum, word))]


class Effect(NamedTuple):
    """What removing one word alone does."""

    if_removed: float | None = None
    region_changed: bool | None = None
    label_if_removed: str | None = None


def _decisions(model: LexicalSAE, logits: Float[Tensor, "B C"]) -> list[str]:
    """What is decided, for people."""
    return [model.output.written(made) for made in model.output.decided(logits, model.labels[CLASSIFY])]


def _effects(read: ReadTexts, direction: Float[Tensor, "B C"], removal: Removal | None) -> list[Effect]:
    """What single removals do, in the order of the code."""
    if removal is None:
        return [Effect()] * len(read.state.code.ids)
    shifts, changed = (-removal.effects.towards(direction)).tolist(), removal.region_changed.tolist()
    left: Sequence[str | None] = [None] * len(shifts)
    if read.model.output.is_choice:
        left = _decisions(read.model, removal.effects.logits_without(read.state.logits))
    return [Effect(*effect) for effect in zip(shifts, changed, left, strict=True)]


def _words(
    model: LexicalSAE,
    read: ReadTexts,
    shares: Shares,
    of_words: Sequence[Mapping[str, Place]],
    effects: Sequence[Effect],
    causes: Mapping[int, Cause],
) -> Iterator[tuple[WordContribution, ...]]:
    """The active words of each text, the top-attributed first."""
    code = read.state.code
    values, contributions, bounds = code.values.tolist(), shares.contributions.tolist(), code.offsets.tolist()
    named = [model.dimensions[i] for i in code.ids.tolist()]
    # A linear head gives a word its contribution in proportion to its activation.
    ratios = None if code.defaults is None else (code.defaults / code.values).tolist()

    def word(entry: int, of_word: Mapping[str, Place]) -> WordContribution:
        name, kind = named[entry].name, named[entry].kind
        start, end, is_expansion = of_word.get(name, Place())
        default = None if ratios is None else contributions[entry] * ratios[entry]
        place, moved = (start, end, is_expansion), {"default": default, "cause": causes.get(entry)}
        return WordContribution(name, kind, values[entry], contributions[entry], *place, *effects[entry], **moved)

    for row, of_word in enumerate(of_words):
        here = sorted(range(bounds[row], bounds[row + 1]), key=lambda entry: -abs(contributions[entry]))
        yield tuple(word(entry, of_word) for entry in here)
