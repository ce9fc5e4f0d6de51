"""Why a word got its tag, and not another: exact, dimension by dimension, shape features among them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from lexical_sae.data.language import word_form
from lexical_sae.data.tagged_sentence import TaggedSentence
from lexical_sae.explanation import SpanContribution, WordContribution
from lexical_sae.inference.labels import check_method, label_index
from lexical_sae.inference.methods import METHODS
from lexical_sae.inference.question import Question
from lexical_sae.inference.tagging import decisions_on, tag
from lexical_sae.inference.word_decisions import ReadWords
from lexical_sae.mechanistic.exact import leave_one_out
from lexical_sae.models.lexical_sae import TAG, LexicalSAE
from lexical_sae.report.explanation.limits import limits
from lexical_sae.report.explanation.shown import ShownExplanation
from lexical_sae.utils.errors import SettingsError

SHAPES = (
    "How the word is written ({names}) was read off its letters: those dimensions are 1 where it is so and 0 where not."
)
SHAPES_IN_ENCODER = (
    "The encoder gets orthographic features of the sentence's words, and may open or close words by them."
)
DECODED = "By itself this word is {alone}; with the words around it, it is {decoded}, because tags must fit together."


def explain_tags(
    model: LexicalSAE,
    sentence: str | Sequence[str],
    words: Sequence[int] | None = None,
    target: str | int | None = None,
    contrast: str | int | None = None,
    method: str = "dla",
    *,
    all_tokens: bool = False,
) -> list[ShownExplanation]:
    """The explanations of the tags of some words of a sentence, in the order of `words`.

    Effects of removal are exact, and so is the sum of contributions. A word that tokenizes to nothing has no
    explanation, and is refused.

    Args:
        model: The tagger.
        sentence: A string, or a list of words.
        words: Places of the words to explain; by default the first word of each entity.
        target: The tag to explain, by name or place; the most probable one by default.
        contrast: The tag to contrast it with. Without a target, the most probable of the other tags is explained.
        method: `dla`, `path` or `leave_one_out` (`lexical_sae.inference.methods`).
        all_tokens: As for `explain`.

    Returns:
        One `Explanation` per word.

    Example: `explain_tags(model, "Acme moved to Oslo", [0], contrast="B-LOC")`
    """
    tagged = tag(model, [sentence])[0]
    wanted = [entity.start for entity in tagged.entities] if words is None else list(words)
    question = replace(_question(model, target, contrast, method), all_tokens=all_tokens)
    found: dict[int, ShownExplanation] = {}
    for read in decisions_on(model, tagged.words, wanted):
        found.update(_explained(model, tagged, question, read))
    return [found[word] for word in wanted]


def find_word(tagged: TaggedSentence, word: str) -> int:
    """The place of a word in a sentence by its spelling, in any case; refused with the words there are."""
    spelled = [w.casefold() for w in tagged.words]
    if word.casefold() not in spelled:
        raise SettingsError(f"{word!r} is no word of the sentence; its words are: {', '.join(tagged.words)}")
    return spelled.index(word.casefold())


def _question(model: LexicalSAE, target: Any, contrast: Any, method: str) -> Question:
    model.head(TAG)
    labels = model.labels[TAG]
    check_method(method, METHODS)
    chosen = None if target is None else label_index(labels, target, "target")
    other = None if contrast is None else label_index(labels, contrast, "contrast")
    if chosen is not None and chosen == other:
        raise SettingsError(f"target and contrast are both {labels[chosen]!r}; a tag is not more than itself")
    return Question(chosen, other, method, effects=True, places=True)


@torch.no_grad()
def _explained(
    model: LexicalSAE, tagged: TaggedSentence, question: Question, read: ReadWords
) -> dict[int, ShownExplanation]:
    """The explanation of each word that was read, by its place in the sentence."""
    head, labels, state = model.head(TAG), model.labels[TAG], read.state
    targets = question.targets(state.logits)
    direction = question.direction(state.logits, targets)
    removal = leave_one_out(head, state)
    shares = METHODS[question.method](head, state, direction, removal)
    left = removal.effects.logits_without(state.logits).argmax(-1).tolist()
    shifts, changed = (-removal.effects.towards(direction)).tolist(), removal.region_changed.tolist()
    values, signed_contributions = state.code.values.tolist(), shares.contributions.tolist()
    named = [model.dimensions[i] for i in state.code.ids.tolist()]
    probabilities, decided = state.logits.softmax(-1).tolist(), state.logits.argmax(-1).tolist()
    explained = (direction * state.logits).sum(-1).tolist()
    found = {}
    for row, (_, place) in enumerate(read.places):
        start, end = tagged.spans[place]
        letters = word_form(tagged.text[start:end])
        entries = range(len(values))[state.code.text(row)]
        contributions = [
            WordContribution(
                named[i].name,
                named[i].kind,
                values[i],
                signed_contributions[i],
                start,
                end,
                named[i].kind != "shape" and named[i].letters != letters,
                shifts[i],
                changed[i],
                labels[left[i]],
            )
            for i in sorted(entries, key=lambda i: -abs(signed_contributions[i]))
        ]
        made = ShownExplanation(
            text=tagged.text,
            label=labels[decided[row]],
            probability=probabilities[row][decided[row]],
            words=tuple(contributions),
            bias=float(shares.biases[row]),
            identity_error=float(shares.identity_errors[row]),
            tokens_cut=0,
            probabilities=tuple(zip(labels, probabilities[row], strict=True)),
            target=labels[int(targets[row])],
            contrast=None if question.contrast is None else labels[question.contrast],
            method=question.method,
            explained=explained[row],
            spans=(
                SpanContribution(tagged.text[start:end], start, end, sum(word.contribution for word in contributions)),
            ),
            whole_text=0.0,
            all_tokens=question.all_tokens,
        )
        about = _about_tags(made, tagged.tags[place], encoder_gets_shapes=model.shape_vectors is not None)
        found[place] = replace(made, not_explained=(*about, *limits(made)))
    return found


def _about_tags(made: ShownExplanation, decoded: str, *, encoder_gets_shapes: bool) -> list[str]:
    """What only holds for words in sentences: neighbours may overrule a tag, and shapes are no words."""
    lines = []
    if decoded != made.label:
        lines.append(DECODED.format(alone=made.label, decoded=decoded))
    if shapes := [word.word for word in made.words if word.kind == "shape"]:
        lines.append(SHAPES.format(names=", ".join(shapes)))
    if encoder_gets_shapes:
        lines.append(SHAPES_IN_ENCODER)
    return lines
