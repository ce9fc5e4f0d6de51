"""Rows of numbers as words, on a tiny encoder that knows these words: for scikit-learn's own checks of estimators."""

from string import ascii_lowercase

import numpy as np
from sklearn.utils.validation import validate_data
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from lexical_sae.sklearn import LexicalClassifier, LexicalVectorizer
from tests import tiny

COLUMNS, LEVELS = 20, 16
WORDS = [f"{a}{b}{part}" for part in "xy" for a in ascii_lowercase[:COLUMNS] for b in ascii_lowercase[:LEVELS]]


def in_words(X: np.ndarray) -> list[str]:
    """Each row as a sentence with two words per column: how large its number is, and what is after the point.

    Example: [[-2.0, 0.1]] -> ["acx aay biy bby"]
    """
    size = np.floor(LEVELS * (0.5 + np.arctan(X) / np.pi)).clip(0, LEVELS - 1).astype(int)
    after = np.floor(LEVELS * np.modf(np.abs(X))[0]).astype(int)
    starts = np.arange(X.shape[1]) % COLUMNS * LEVELS
    places = np.stack([starts + size, COLUMNS * LEVELS + starts + after], axis=-1).reshape(len(X), -1)
    return [" ".join(WORDS[place] for place in row) for row in places]


def encoder_of_numbers(folder) -> str:
    """The folder of a tiny masked LM whose vocabulary is these words."""
    vocabulary = {word: i for i, word in enumerate([*tiny.SPECIALS, *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 3), ("[SEP]", 4)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, mask_token="[MASK]", model_max_length=64, **names)
    tiny.masked_lm(vocab_size=len(vocabulary)).save_pretrained(folder)
    fast.save_pretrained(folder)
    return str(folder)


class ReadsNumbers:
    """Reads rows of numbers where the estimator reads texts, checked as scikit-learn's own estimators check them."""

    def _texts(self, X, y=None):
        return in_words(validate_data(self, X, reset=y is not None))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = False
        tags.input_tags.two_d_array = True
        return tags


def _init(self, encoder="minilm", recipe="anchored", context=True, active_words=None, max_epochs=None, minutes=None,
          class_weight=None, validation_fraction=0.1, device="auto", random_state=None, verbose=False):  # fmt: skip
    """The estimators' own parameters without their types: scikit-learn sets each to -1, and tests check types."""
    vars(self).update({name: value for name, value in locals().items() if name != "self"})


class NumbersClassifier(ReadsNumbers, LexicalClassifier):
    __init__ = _init  # pyright: ignore[reportAssignmentType]


class NumbersVectorizer(ReadsNumbers, LexicalVectorizer):
    __init__ = _init  # pyright: ignore[reportAssignmentType]
