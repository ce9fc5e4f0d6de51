"""A table of words from all labelled texts, where these are few: validation texts join once they have chosen.

Whether context is worth its place was decided on texts that the table had not seen. After that a quarter of a small
set would lie idle, so the same table is fitted again with it. Figures of validation and the calibration stay those of
texts left out.
"""

from dataclasses import replace

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.models.calibration import Calibration, word_hash, words_of
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.runs.inputs import documents
from lexical_sae.runs.seeds import Watchers
from lexical_sae.training.folds import FoldedDocuments
from lexical_sae.training.unlabelled import UnlabelledTexts
from lexical_sae.training.word_table import fit_word_table


def joined_texts(dataset: TextDataset) -> TextSplit:
    """The training texts, and those of validation that are not among them."""
    train, known = dataset.train, set(dataset.train.keys())
    new = [row for row, key in enumerate(dataset.validation.keys()) if key not in known]
    more = dataset.validation.take(new)
    weights = None
    if train.weights is not None or more.weights is not None:
        weights = tuple(weight for part in (train, more) for weight in part.weights or (1.0,) * len(part))
    strata = None if train.strata_of is None else train.strata_of + (more.strata_of or ())
    return TextSplit(train.texts + more.texts, train.labels + more.labels, weights=weights, strata_of=strata)


def fitted_again(
    model: LexicalSAE,
    settings: ModelConfig,
    texts: TextSplit,
    unlabelled: UnlabelledTexts | None,
    seed: int,
    watchers: Watchers,
) -> LexicalSAE:
    """The table of these texts instead of the model's, which was made with these settings; its calibration stays."""
    without = settings.model_copy(update={"context": None})
    words = (*texts.texts, *(unlabelled.texts if unlabelled else ()))
    found = LexicalSAE.from_backbone(without, model.labels, words, model.output).to(next(model.parameters()).device)
    folded = FoldedDocuments.of(replace(documents(found, texts), unlabelled=unlabelled), seed)
    fit_word_table(found, folded, folded.folds, (), watchers.on_step)
    watchers.on_note(f"texts are few: the table is fitted again, on all {len(texts)} of training and validation")
    found.calibration = _knowing(model.calibration, texts)
    return found.eval()


def _knowing(calibration: Calibration | None, texts: TextSplit) -> Calibration | None:
    """The same calibration, to which no word of these texts is new."""
    if calibration is None:
        return None
    words = frozenset(word_hash(word) for word in {word for text in texts.texts for word in words_of(text)})
    return replace(calibration, usual=replace(calibration.usual, known_words=calibration.usual.known_words | words))
