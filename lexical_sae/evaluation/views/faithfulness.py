"""Whether a model's explanations are faithful: rows, tables and charts of an evaluation's second topic."""

from lexical_sae.evaluation.metrics.attribution_methods import ATTRIBUTION_METHODS
from lexical_sae.evaluation.metrics.completeness import COMPLETENESS, CompletenessResult, Remaining
from lexical_sae.evaluation.metrics.eraser import ERASER, EraserResult
from lexical_sae.evaluation.metrics.out_of_distribution import OUT_OF_DISTRIBUTION, MaskingResult
from lexical_sae.evaluation.metrics.removability import REMOVABILITY, RemovabilityResult
from lexical_sae.evaluation.metrics.verification import VERIFICATION, Verification
from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.views.charts import chart, level, line
from lexical_sae.evaluation.views.methods import compared_table
from lexical_sae.evaluation.views.rows import ORDERS, Rows, check_rows, word_count
from lexical_sae.report.charts.svg import Axis, Picture
from lexical_sae.report.interval_text import number_text, share_text
from lexical_sae.report.tables import FIGURE, FigureTable

SHARE_OF_WORDS = Axis("% of a text's active words", log=True)


def faithfulness_rows(found: EvaluationResults) -> Rows:
    """Whether contributions sum to the logit, what removal shows of them, and whether it leaves the distribution."""
    return [
        *found.views(VERIFICATION, lambda check: check_rows(check, "in", "text")),
        *found.views(OUT_OF_DISTRIBUTION, _masking_rows),
    ]


def faithfulness_tables(found: EvaluationResults) -> list[FigureTable]:
    """What happens from a few words alone and without them, and the checks behind it."""
    return [
        *found.views(COMPLETENESS, _circuit_tables),
        *found.views(ERASER, _eraser_tables),
        *found.views(REMOVABILITY, _removal_tables),
        *found.views(VERIFICATION, _check_tables),
        *found.views(OUT_OF_DISTRIBUTION, _masking_tables),
        *found.views(ATTRIBUTION_METHODS, lambda compared: [compared_table(compared)]),
    ]


def faithfulness_charts(found: EvaluationResults) -> list[Picture]:
    """Circuits alone, words removed, and the probability that goes with them, each beside its controls."""
    return [
        *found.views(COMPLETENESS, _circuits),
        *found.views(REMOVABILITY, _removals),
        *found.views(ERASER, _erased),
    ]


def _masking_rows(masking: MaskingResult) -> Rows:
    half = masking.masked[-1]
    remark = (
        f"of texts without their strongest {half.fraction:.0%} of words; texts as in training "
        f"{share_text(masking.as_trained, limits=False)}, two texts at once {share_text(masking.merged, limits=False)}"
    )
    return [("out of distribution", share_text(half.strongest), remark)]


def _circuit_tables(completeness: CompletenessResult) -> list[FigureTable]:
    rows = [("no words", "0", *_remaining(completeness.empty), "")]
    for size in completeness.sizes:
        name, words = f"{size.fraction:.0%} of the words", number_text(size.words, 1)
        rows.append((name, words, *_remaining(size.circuit), share_text(size.advantage)))
        rows.append((f"{name}, at random", words, *_remaining(size.random), ""))
    rows.append(("all words", "", "", share_text(completeness.full_accuracy), "", "", "", ""))
    columns = ("left", "words", "same label", "accuracy", "of all words' accuracy", "KL (nats)", "evidence kept")
    return [
        FigureTable(
            "The decision from a few words alone (completeness)",
            (*columns, "same label, above random"),
            rows,
            "The words with the largest contributions, beside as many random ones and none. Evidence: the way from the "
            "empty text to the full one.",
        )
    ]


def _remaining(left: Remaining) -> tuple[str, ...]:
    return (
        share_text(left.agreement),
        share_text(left.accuracy),
        share_text(left.relative_accuracy),
        number_text(left.kl, 3),
        share_text(left.recovered),
    )


def _eraser_tables(eraser: EraserResult) -> list[FigureTable]:
    orders = [eraser.orders[key] for key in ORDERS]
    advantage = number_text(eraser.comprehensiveness_advantage, 3)
    notes = {
        "comprehensiveness": "Probability lost without those words; high is good. AOPC of contributions above random "
        f"words: {advantage}.",
        "sufficiency": "Probability lost with those words alone; low is good.",
    }
    return [
        FigureTable(
            f"ERASER {key}, by what chooses the words",
            ("share of the words", *ORDERS.values()),
            [
                *(
                    (f"{one[0].fraction:.0%}", *(number_text(getattr(budget, key), 3) for budget in one))
                    for one in zip(*(order.budgets for order in orders), strict=True)
                ),
                ("AOPC, the mean", *(number_text(getattr(order, key), 3) for order in orders)),
            ],
            note,
        )
        for key, note in notes.items()
    ]


def _removal_tables(removability: RemovabilityResult) -> list[FigureTable]:
    rows = [
        (
            word_count(rate.words),
            *(share_text(rate.orders[key]) for key in ORDERS),
            share_text(rate.advantage),
        )
        for rate in removability.removed
    ]
    rows.append(("all words", share_text(removability.everything), "", "", ""))
    columns = ("removed", *ORDERS.values(), "contributions above random")
    return [FigureTable("Labels that change without the top-attributed words, by what chooses them", columns, rows)]


def _check_tables(check: Verification) -> list[FigureTable]:
    return [
        FigureTable(
            "Do contributions sum to the logit, and agree with removal?",
            FIGURE,
            [
                ("texts whose gap is above 1e-05 of the contributions", str(check.texts_beyond_tolerance)),
                ("worst gap, as a share of the contributions", f"{check.worst_relative_error:.1e}"),
                ("worst gap, in logits", f"{check.worst_absolute_error:.1e}"),
                ("place of the text with the worst gap", str(check.worst_text)),
                ("words whose removal effect has the sign of their contribution", share_text(check.same_sign)),
                ("difference of contributions and removal effects", share_text(check.effect_error)),
                ("removals that switch a hidden unit", share_text(check.region_changed)),
            ],
        )
    ]


def _masking_tables(masking: MaskingResult) -> list[FigureTable]:
    trained = "with" if masking.trained_with_masking else "without"
    rows = [("whole", share_text(masking.whole), "")]
    rows += [
        (f"without {one.fraction:.0%} of the words", share_text(one.strongest), share_text(one.random))
        for one in masking.masked
    ]
    rows += [
        ("as in training", share_text(masking.as_trained), ""),
        ("two texts at once", share_text(masking.merged), ""),
        ("the same activations on scattered words", share_text(masking.scattered), ""),
    ]
    return [
        FigureTable(
            "Out of distribution for the head when words are masked",
            ("texts", "strongest words", "random words"),
            rows,
            f"Of {masking.texts} texts; 5 % is no shift. The model was trained {trained} masking.",
        )
    ]


def _circuits(completeness: CompletenessResult) -> list[Picture]:
    sizes = completeness.sizes
    lines = [
        line(name, ((100 * size.fraction, getattr(size, key).agreement) for size in sizes), 100)
        for key, name in (("circuit", "strongest words"), ("random", "random words"))
    ]
    at = [100 * size.fraction for size in sizes]
    lines += level("no words", completeness.empty.agreement.mean, at, 100)
    return chart("Labels that stay, from a few words alone", SHARE_OF_WORDS, "% of texts", lines)


def _removals(removability: RemovabilityResult) -> list[Picture]:
    rates = removability.removed
    lines = [line(name, ((rate.words, rate.orders[key]) for rate in rates), 100) for key, name in ORDERS.items()]
    lines += level("without all words", removability.everything.mean, [rate.words for rate in rates], 100)
    title = "Labels that change without the top-attributed words"
    return chart(title, Axis("words removed", log=True), "% of texts", lines, from_zero=True)


def _erased(eraser: EraserResult) -> list[Picture]:
    titles = {
        "comprehensiveness": "Probability lost without the top-attributed words",
        "sufficiency": "Probability lost with the top-attributed words alone",
    }
    return [picture for key, title in titles.items() for picture in _erased_chart(title, eraser, key)]


def _erased_chart(title: str, eraser: EraserResult, key: str) -> list[Picture]:
    lines = [
        line(name, ((100 * one.fraction, getattr(one, key)) for one in eraser.orders[order].budgets), 1)
        for order, name in ORDERS.items()
    ]
    return chart(title, SHARE_OF_WORDS, f"{key}, by choice of words", lines, from_zero=True)
