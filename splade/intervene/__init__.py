"""Taking words away from a model: for a while, for good, or by a file that people edit.

    SuppressedModel            the same model without some words; the model itself keeps them
    suppress_token_globally    words closed in the model for good, also when it is saved; `undo` opens them again
    Lexicon, load_lexicon      which words a model may not use, as a YAML file
    apply_lexicon, edit_saved_model
    model_table                a model with literal words as a table of weights, for a spreadsheet
    edited_by_table, edit_saved_by_table

A word is closed in the gate, never by zeroing its row of the decoder: that row is most often the input embedding too,
and the encoder would no longer read the word. Closed, it has a strength of zero for every text, bitwise. What the
encoder read may still reach the decision through other words; `docs/surgery.md` says how far zeroing goes.
"""

from splade.intervene.lexicon import (
    LEXICON_FILE,
    Lexicon,
    apply_lexicon,
    attached_lexicon,
    edit_saved_model,
    load_lexicon,
    parse_lexicon,
)
from splade.intervene.suppression import SuppressedModel, Suppression, suppress_token_globally, with_closed
from splade.intervene.table_edit import TableEdit, WeightChange, edit_saved_by_table, edited_by_table
from splade.intervene.word_table import (
    FREQUENCIES_FILE,
    WordRow,
    WordTable,
    attached_frequencies,
    load_word_table,
    model_table,
    write_word_table,
)
from splade.intervene.words import FoundWord, find_words, opened_to_words, suppressed_mask

__all__ = [
    "FREQUENCIES_FILE",
    "LEXICON_FILE",
    "FoundWord",
    "Lexicon",
    "SuppressedModel",
    "Suppression",
    "TableEdit",
    "WeightChange",
    "WordRow",
    "WordTable",
    "apply_lexicon",
    "attached_frequencies",
    "attached_lexicon",
    "edit_saved_by_table",
    "edit_saved_model",
    "edited_by_table",
    "find_words",
    "load_lexicon",
    "load_word_table",
    "model_table",
    "opened_to_words",
    "parse_lexicon",
    "suppress_token_globally",
    "suppressed_mask",
    "with_closed",
    "write_word_table",
]
