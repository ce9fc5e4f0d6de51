"""What shape features say of a word, in words: their names are short, and a reader may ask what exactly counts."""

SHAPE_MEANINGS: dict[str, str] = {
    "is capitalised": "begins with a capital and is not all in capitals: Oslo",
    "all caps": "two letters or more, all of them capitals: EU, U.S.",
    "mixed case": "a capital after the beginning, and small letters too: McKay",
    "has digit": "a digit somewhere: 3rd",
    "is a number": "digits, and beside them only signs as numbers have them: 1,000 or 3-1",
    "has hyphen": "a hyphen between its letters: third-place",
    "has full stop": "a full stop, and a letter: U.S.",
    "opens the sentence": "it is the first word",
    "after a capital": "the word before it begins with a capital",
    "before a capital": "the word after it begins with a capital",
    "in a headline": "two thirds or more of the sentence's longer words are all in capitals",
}
"""By the name of the dimension, in the order of the dimensions; examples come after the colon."""
