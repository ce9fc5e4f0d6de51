"""Tags of words, from any texts: names and what they are names of."""

from collections.abc import Iterable, Sequence
from typing import Any, overload

from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.data.tagged_sentence import TaggedSentence, split_words
from lexical_sae.inference.word_decisions import ReadWords, read_words, words_of
from lexical_sae.models.lexical_sae import TAG, LexicalSAE
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.progress import OnStep, silent


@overload
def tag(model: LexicalSAE, sentences: str, *, batch_size: int = 32, on_step: OnStep = silent) -> TaggedSentence: ...  # pyright: ignore[reportOverlappingOverload]
@overload
def tag(
    model: LexicalSAE, sentences: Iterable[str | Sequence[str]], *, batch_size: int = 32, on_step: OnStep = silent
) -> list[TaggedSentence]: ...
def tag(
    model: LexicalSAE, sentences: Any, *, batch_size: int = 32, on_step: OnStep = silent
) -> TaggedSentence | list[TaggedSentence]:
    """The tags of a text, or of each text of a list.

    Tags are decoded together: the best valid sequence, not the best tag of each word.

    Args:
        model: The tagger.
        sentences: A string, or a list whose items are strings or lists of words; words given as a list are kept as they
            are.
        batch_size: Rows of tokens per batch.
        on_step: Called after each batch.

    Returns:
        One `TaggedSentence` for a string, a list of them for a list.

    Example: `[s.written(e) for e in (s := tag(model, "Acme moved to Oslo")).entities]` -> ["Acme", "Oslo"]
    """
    if isinstance(sentences, str):
        return tag(model, [sentences], batch_size=batch_size, on_step=on_step)[0]
    model.head(TAG)
    untagged = [untagged_sentence(sentence, number) for number, sentence in enumerate(sentences)]
    words = [sentence.words for sentence in untagged]
    rows = words_of(model, words)
    found = (
        (read.places, read.state.logits)
        for read in read_words(model, words, rows, batch_size=batch_size, on_step=on_step)
    )
    decoded = rows.decode(found, model.labels[TAG])
    return [TaggedSentence(s.text, s.spans, tags) for s, tags in zip(untagged, decoded, strict=True)]


def untagged_sentence(sentence: Any, number: int = 0) -> TaggedSentence:
    """A text or a list of words with every tag `O`; anything else is refused."""
    if isinstance(sentence, str):
        text = repair_text(sentence)
        spans = tuple(split_words(text))
        return TaggedSentence(text, spans, ("O",) * len(spans))
    if not isinstance(sentence, Sequence) or isinstance(sentence, bytes):
        raise SettingsError(f"sentence {number} is {type(sentence).__name__}; give a string or a list of words")
    if odd := [word for word in sentence if not isinstance(word, str)]:
        raise SettingsError(f"sentence {number} holds {type(odd[0]).__name__} {odd[0]!r}; its words must be strings")
    return TaggedSentence.of_words([repair_text(word) for word in sentence], ["O"] * len(sentence))


def decisions_on(model: LexicalSAE, words: Sequence[str], wanted: Sequence[int]) -> list[ReadWords]:
    """The decisions on some words of a sentence, counted from 0, in no order; what cannot be read is refused."""
    if outside := [word for word in wanted if not 0 <= word < len(words)]:
        raise SettingsError(f"there is no word {outside[0]}; the sentence has {len(words)} words, counted from 0")
    found = list(read_words(model, [words], words_of(model, [words]), only={(0, word) for word in wanted}))
    read = {word for some in found for _, word in some.places}
    if unread := [word for word in wanted if word not in read]:
        raise SettingsError(f"word {unread[0]}, {words[unread[0]]!r}, tokenises to nothing: nothing was decided on it")
    return found
