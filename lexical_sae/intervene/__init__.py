"""Model editing: suppressing words in a view, for good, or by a file; and editing the table of weights.

    SuppressedModel            a view of a model without some words; the model itself keeps them
    suppress_token_globally    words suppressed in the model itself, also when it is saved; `undo` reverses it
    Lexicon, load_lexicon      words that a model may not use, as a YAML file
    apply_lexicon, edit_saved_model
    model_table                the weights of a model with literal words as a table, for a spreadsheet
    edited_by_table, edit_saved_by_table

A word is suppressed in the gate, not by zeroing its row of the decoder: that row is usually the input embedding too,
and the encoder could no longer read the word. A suppressed word has an activation of exactly zero for every text.
Other words may still carry the same information (`docs/surgery.md`).
"""

from lexical_sae.intervene.lexicon import (
    LEXICON_FILE,
    Lexicon,
    apply_lexicon,
    attached_lexicon,
    edit_saved_model,
    load_lexicon,
    parse_lexicon,
)
from lexical_sae.intervene.suppression import SuppressedModel, Suppression, suppress_token_globally, with_closed
from lexical_sae.intervene.table_edit import TableEdit, WeightChange, edit_saved_by_table, edited_by_table
from lexical_sae.intervene.word_table import (
    FREQUENCIES_FILE,
    WordRow,
    WordTable,
    attached_frequencies,
    load_word_table,
    model_table,
    write_word_table,
)
from lexical_sae.intervene.words import FoundWord, find_words, opened_to_words, suppressed_mask

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
