"""An evaluation as named figures with a remark each, for the terminal and for pages.

Everything is made from plain data, as `EvaluationResults.as_dict` writes it.
"""

from collections.abc import Mapping
from typing import Any

from splade.report.interval_text import number_text, share_text
from splade.report.printable import shown

Data = Mapping[str, Any]
Rows = list[tuple[str, str, str]]


def decision_rows(found: Data) -> Rows:
    """Accuracy, active words and calibration."""
    scores, calibration = found["performance"], found["calibration"]
    # Older files lack it.
    context = found.get("context")
    chance = f"up to {calibration['ece_by_chance_high']:.1%} is chance"
    rows = [
        ("accuracy", share_text(scores["accuracy"]), f"always naming the commonest label: {scores['majority']:.1%}"),
        *(_context_rows(context) if context else ()),
        ("active words", number_text(scores["active_words"], 0), "per text"),
        ("calibration error", share_text(calibration["ece"]), f"gap between confidence and accuracy; {chance}"),
        ("overconfidence", share_text(calibration["overconfidence"]), "mean confidence minus accuracy"),
    ]
    if scores["texts_without_words"]:
        rows.append(("no words", str(scores["texts_without_words"]), "texts; the bias alone decides"))
    if scores["texts_at_limit"]:
        rows.append(("texts cut", f"at most {scores['texts_at_limit']}", "fill all that the model reads"))
    return [*rows, *selective_rows(found.get("selective"))]


def selective_rows(selective: Data | None) -> Rows:
    """Accuracy by coverage, and how many texts get a warning; nothing in older evaluations."""
    if selective is None:
        return []
    rows = [
        (
            f"most confident {point['coverage']:.0%}",
            f"{point['accuracy']:.1%}",
            f"accuracy of the {point['texts']} texts with a confidence of {point['least_confidence']:.0%} or more",
        )
        for point in selective["points"]
        if point["coverage"] < 1
    ]
    kinds = ", ".join(f"{kind} {share:.1%}" for kind, share in selective["warnings"].items())
    missing = "" if selective["is_calibrated"] else "the model has no calibration, so most kinds are missing"
    return [
        *rows,
        ("AURC", f"{selective['aurc']:.3f}", f"area under risk–coverage; {selective['error']:.3f} is chance"),
        ("texts with a warning", f"{selective['warned']:.1%}", "; ".join(filter(None, (kinds, missing)))),
    ]


def _context_rows(context: Data) -> Rows:
    """What literal words decide without context, and how often it acts."""
    without = f"words per text not at their default; none in {share_text(context['texts_without'])} of texts"
    return [
        ("context-free accuracy", share_text(context["context_free"]), "every word at its default: the table alone"),
        ("context shifts", number_text(context["shifts"], 1), without),
    ]


def truth_rows(found: Data) -> Rows:
    """Whether contributions sum to the logit, and what removal shows of them."""
    rows, masking = check_rows(found["verification"], "in", "text"), found["masking"]
    if masking is not None:
        half = masking["masked"][-1]
        rows.append(
            (
                "out of the usual",
                share_text(half["strongest"]),
                f"of texts without their strongest {half['fraction']:.0%} of words; texts as in training "
                f"give {_mean_share(masking['as_trained'])}, two at once {_mean_share(masking['merged'])}",
            )
        )
    return rows


def check_rows(check: Data, at: str, what: str) -> Rows:
    """The identity and how far contributions are from effects, "in" texts or "at" words."""
    beyond = check["texts_beyond_tolerance"]
    return [
        (
            "sums to the logit",
            f"{at} every {what}" if not beyond else f"not {at} {beyond} {what}s",
            f"worst gap {check['worst_relative_error']:.0e} of the contributions; 1e-05 is allowed",
        ),
        ("same sign", share_text(check["same_sign"]), "of words push the way that their removal shows"),
        ("off by", share_text(check["effect_error"]), "of its size, a contribution from the effect of removal"),
    ]


def circuit_rows(completeness: Data) -> Rows:
    """What the strongest words alone decide, by their share of a text's words."""
    empty = ("no words", share_text(completeness["empty"]["agreement"]), "the bias alone")
    return [
        empty,
        *(
            (
                f"{size['fraction']:.0%} of the words",
                share_text(size["circuit"]["agreement"]),
                f"{size['words']['mean']:.1f} words; as many random ones: {_mean_share(size['random']['agreement'])}",
            )
            for size in completeness["sizes"]
        ),
    ]


def removal_rows(removability: Data) -> Rows:
    """How many labels change without the most telling words."""
    rows = [
        (
            "without the top word" if rate["words"] == 1 else f"without the top {rate['words']}",
            share_text(rate["orders"]["direct"]),
            f"chosen by exact effects: {_mean_share(rate['orders']['leave_one_out'])}; "
            f"random words: {_mean_share(rate['orders']['random'])}",
        )
        for rate in removability["removed"]
    ]
    return [*rows, ("without all words", share_text(removability["everything"]), "")]


def word_rows(found: Data) -> Rows:
    """What the words themselves are like."""
    separation, stability, downstream = found["separation"], found["stability"], found["downstream"]
    other = stability["other_texts"]
    rows = [
        (
            "spread",
            f"{number_text(found['ablation_sparsity']['contributions'], 1)} words",
            "carry a decision, as if equal ((L1/L2)² of the contributions)",
        ),
        (
            "stays the same",
            share_text(stability["all_edits"]["top_words"]),
            f"of the ten top words after harmless edits; another text shares {_mean_share(other['top_words'])}",
        ),
    ]
    rows += separation_rows(separation, "class", "classes")
    if found["probes"] is not None:
        probes = found["probes"]
        words = ", ".join(f"{one['label']}: {one['word']}" for one in probes["classes"][:4])
        # Evaluations of before it was measured have no gain.
        gain = f", gain {number_text(probes['gain'], 3)}" if "gain" in probes else ""
        remark = f"loss; {probes['base_loss']:.3f} without{gain} ({shown(words)})"
        rows.append(("best single word", f"{probes['loss']:.3f}", remark))
    rows.append(("cost of the gate", number_text(downstream["delta"], 3), "of cross-entropy; negative where it helps"))
    return rows


def separation_rows(separation: Data, kind: str, kinds: str) -> Rows:
    """How far apart the words of classes, or of tags, are; nothing of fewer than two."""
    rows: Rows = []
    if separation["cosine"] is not None:
        chance = separation["cosine_by_chance"]
        beside = "" if chance is None else f"; {kinds} by lot: {chance:.2f}"
        rows.append(("separation", number_text(separation["cosine"], 2), f"of the {kinds}' words, 0 to 1{beside}"))
    if separation["jaccard"] is not None:
        rows.append(("overlap", number_text(separation["jaccard"], 2), f"of circuits within a {kind} minus across"))
    return rows


def _mean_share(interval: Data) -> str:
    """A share without its interval, for a remark."""
    return share_text({**interval, "low": None})
