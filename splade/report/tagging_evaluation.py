"""Whether a tagger's explanations are true, as named figures with a remark each, for the terminal and for pages.

Everything is made from plain data, as `TagFaithfulness.as_dict` writes it.
"""

from splade.report.evaluation_figures import Data, Rows, check_rows, circuit_rows, removal_rows, separation_rows
from splade.report.interval_text import number_text

TIERS = (("entities", "{} words tagged as part of an entity"), ("all_words", "all {} words, whatever their tag"))


def tagging_evaluation_figures(found: Data) -> list[tuple[str, Rows]]:
    """The evaluation under headings; words that are part of an entity come first, for there is more to explain."""
    tables = [table for key, who in TIERS if found[key] for table in _tier(found[key], who)]
    separation = separation_rows(found["separation"], "tag", "tags")
    return [*tables, ("Do tags use different words?", separation)] if separation else tables


def _tier(tier: Data, who: str) -> list[tuple[str, Rows]]:
    where = who.format(tier["words"])
    return [
        (f"Are its explanations true? On {where}", _truth_rows(tier)),
        (
            f"Are a few of its words enough? Tags that stay with these alone, on {where}",
            circuit_rows(tier["completeness"]),
        ),
        (
            f"What happens without its most telling words? Tags that change, on {where}",
            removal_rows(tier["removability"]),
        ),
    ]


def _truth_rows(tier: Data) -> Rows:
    orders = tier["eraser"]["orders"]
    return [
        *check_rows(tier["verification"], "at", "word"),
        _eraser_row(orders, "comprehensiveness", "probability of the tag lost without the top words"),
        _eraser_row(orders, "sufficiency", "lost with nothing else; low is good"),
    ]


def _eraser_row(orders: Data, key: str, meaning: str) -> tuple[str, str, str]:
    exact, random = (number_text({**orders[name][key], "low": None}, 3) for name in ("leave_one_out", "random"))
    beside = f"chosen by exact effects: {exact}; random words: {random}"
    return key, number_text(orders["direct"][key], 3), f"{meaning}; {beside}"
