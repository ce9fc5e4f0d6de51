import xml.etree.ElementTree as ElementTree

from rich.console import Console

from lexical_sae.report.charts.leakage import leakage_sentence, leakage_svg
from lexical_sae.report.studies.concept_removal import StudyFiles, method_rows, study_html, study_view, summary

NASTY = '<script>alert("1")</script>&\x1b[31m'
INTERVAL = {"mean": 0.25, "low": 0.2, "high": 0.3, "count": 9}
NOTHING = {"mean": None, "low": None, "high": None, "count": 0}
SCORE = {"probe": "k-NN", "accuracy": 0.9, "low": 0.8, "high": 0.95}
FIGURES = dict.fromkeys(
    ["fpr", "fpr_gap_background", "fpr_gap_overall", "equalised_odds", "subgroup_auc", "bpsn_auc", "bnsp_auc"], INTERVAL
)
GROUPS = [
    {"name": NASTY, "texts": 30, "negatives": 20, "is_too_small": False, "figures": FIGURES},
    {"name": "captains", "texts": 3, "negatives": 2, "is_too_small": True, "figures": {}},
]
AUDIT = {"worst_fpr_gap": INTERVAL, "accuracy": {**INTERVAL, "mean": 0.875}, "groups": GROUPS}
FOUND = {
    "audit": AUDIT,
    "changed": 0.125,
    "leakage": {**SCORE, "leaks": True},
    "swap": {"texts": 0, "change": INTERVAL, "flipped": NOTHING},
}
RESULTS = {
    "data": "planted",
    "words": [NASTY],
    "words_given": False,
    "methods": {"before removal": FOUND, "zeroing": {"audit": AUDIT, "changed": 0.0}},
    "others": {NASTY: {"before removal": FOUND}},
    "ceilings": {"majority": 0.5, "scores": {"before removal": [SCORE], NASTY: [{**SCORE, "probe": "boosted trees"}]}},
    "suspects": [
        {"name": NASTY, "group": NASTY, "difference": 1, "correlation": 0.5, "centroid": 0, "same_sign": 1, "texts": 9}
    ],
    "choice": {
        "verdict": "reached",
        "on_test": {"before": {"gap": INTERVAL, "accuracy": INTERVAL}},
        "random_sets": [{"gap": 0.1, "accuracy": 0.8}, {"gap": 0.3, "accuracy": 0.9}],
    },
}


def test_a_removal_is_a_row_with_its_intervals():
    first, second = method_rows(RESULTS["methods"])
    assert first == (
        "before removal",
        "0.250 (0.200 to 0.300)",
        "87.5% (20.0% to 30.0%)",
        "90.0% (80.0% to 95.0%)",
        "0.250 (0.200 to 0.300)",
        "–",
        "12.5%",
    )
    assert second[3:6] == ("–", "–", "–")


def test_the_summary_says_what_was_chosen_against_what_and_which_groups_are_too_small():
    lines = summary(RESULTS)
    assert "chosen on validation" in lines[0]
    assert "2 random sets of equal mass: gap 0.200, accuracy 85.0% on average." in lines
    assert lines[-1] == "Too few texts to say anything: captains."


def test_the_summary_says_what_was_measured_where_nothing_is_removed():
    nothing = {**RESULTS, "concept": "muslim", "words": [], "measured_words": ["imam", "mosque"]}
    lines = summary(nothing)
    assert "correlates with muslim on train beyond chance: imam, mosque." in " ".join(lines)
    assert "no edited model is written" in " ".join(lines)
    assert "only LEACE" in " ".join(summary({**nothing, "measured_words": []}))
    assert "all the same" not in " ".join(summary(RESULTS))


def test_strings_from_outside_are_escaped_and_links_lead_to_the_files():
    page = study_html(NASTY, RESULTS, StudyFiles("certificate.json", "lexicon.yaml"))
    assert "<script" not in page
    assert "\x1b" not in page
    assert 'href="certificate.json"' in page
    assert "too few texts" in page
    assert "href" not in study_html("x", RESULTS)


def test_the_plot_is_well_formed_and_tells_itself():
    drawn = ElementTree.fromstring(leakage_svg(RESULTS["ceilings"]))
    text = "".join(drawn.itertext())
    assert "boosted trees: 90.0% (80.0% to 95.0%)" in text
    assert "Guessing: 50.0%." in leakage_sentence(RESULTS["ceilings"])


def test_the_terminal_shows_every_set():
    console = Console(width=250, record=True)
    with console.capture() as capture:
        console.print(study_view(RESULTS))
    shown = capture.get()
    assert "planted (test)" in shown
    assert "zeroing" in shown
    assert "\x1b[31m" not in shown


def test_suspects_that_are_no_words_are_counted():
    assert "pieces and symbols" not in study_html("a study", RESULTS)
    assert "and 2 pieces and symbols that are no words" in study_html("a study", {**RESULTS, "suspect_pieces": 2})
