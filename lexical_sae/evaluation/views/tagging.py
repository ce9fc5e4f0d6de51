"""Whether a tagger's explanations are faithful, as named figures with a remark each."""

from lexical_sae.evaluation.metrics.eraser import EraserResult
from lexical_sae.evaluation.tagging.faithfulness import TagFaithfulness, TagTier
from lexical_sae.evaluation.views.rows import Rows, check_rows, circuit_rows, removal_rows, separation_rows
from lexical_sae.report.interval_text import number_text


def tagging_evaluation_figures(found: TagFaithfulness) -> list[tuple[str, Rows]]:
    """The evaluation under headings; words that are part of an entity come first, for there is more to explain."""
    tiers = (
        (found.entities, "{} words tagged as part of an entity"),
        (found.all_words, "all {} words, whatever their tag"),
    )
    tables = [table for tier, words in tiers if tier for table in _tier(tier, words.format(tier.words))]
    separation = separation_rows(found.separation, "tag", "tags")
    return [*tables, ("Do tags use different words?", separation)] if separation else tables


def _tier(tier: TagTier, where: str) -> list[tuple[str, Rows]]:
    return [
        (f"Are its explanations true? On {where}", _faithfulness_rows(tier)),
        (
            f"Are a few of its words enough? Tags that stay with these alone, on {where}",
            circuit_rows(tier.completeness),
        ),
        (
            f"What happens without its top-attributed words? Tags that change, on {where}",
            removal_rows(tier.removability),
        ),
    ]


def _faithfulness_rows(tier: TagTier) -> Rows:
    return [
        *check_rows(tier.verification, "at", "word"),
        _eraser_row(tier.eraser, "comprehensiveness", "probability of the tag lost without the top-attributed words"),
        _eraser_row(tier.eraser, "sufficiency", "lost with nothing else; low is good"),
    ]


def _eraser_row(eraser: EraserResult, key: str, meaning: str) -> tuple[str, str, str]:
    direct, exact, random = (getattr(eraser.orders[name], key) for name in ("direct", "leave_one_out", "random"))
    controls = f"by leave-one-out: {number_text(exact, 3, limits=False)}; random words: "
    return key, number_text(direct, 3), f"{meaning}; {controls}{number_text(random, 3, limits=False)}"
