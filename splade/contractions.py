"""English negations with an apostrophe: "isn't" is one word to a reader, whatever a tokenizer makes of it.

BERT's tokenizer cuts it into `isn ' t`. Taken apart, "won't" speaks of winning and "can't" says what "can" does.
"""

NEGATED = frozenset(
    """
    ain isn aren wasn weren don doesn didn haven hasn hadn won wouldn can couldn shouldn mustn mightn needn shan n
    """.split()  # noqa: SIM905 - a list of strings would be a page long
)
"""What stands before the apostrophe; "n" alone where a corpus writes "is n't"."""
APOSTROPHES = ("'", "’")
CONTRACTIONS = frozenset(f"{stem}'t" for stem in NEGATED)
