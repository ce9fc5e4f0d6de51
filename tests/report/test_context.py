from lexical_sae.report.context import context_figures, main_context_rows, points_text


def interval(mean, low=None, high=None):
    return {"mean": mean, "low": low, "high": high, "count": 9}


SCORES = {
    "texts": 720,
    "edited_texts": 100,
    "accuracy": {
        "full": interval(0.872),
        "context_free": interval(0.758, 0.73, 0.78),
        "difference": interval(-0.114),
        "bag_of_words": interval(0.806),
        "tfidf": interval(0.821),
    },
    "leakage": {
        "neutral_words": 1200,
        "points": interval(0.149, 0.12, 0.18),
        "shuffled_labels": interval(0.001),
        "probe": interval(0.739),
        "probe_on_presence": interval(0.59),
        "own_head": interval(0.743),
        "own_head_at_defaults": interval(0.59),
        "contribution_share": interval(0.31),
        "bits": interval(0.2),
        "shuffled_activations": interval(-0.01),
        "label_bits": 1.0,
    },
    "shifts": {
        "is_explicit": False,
        "per_text": interval(7.21),
        "texts_without": interval(0.006),
        "context_share": interval(0.4),
    },
    "independence": {"change": interval(0.73)},
    "minimal_pairs": {
        "pairs": 120,
        "features_change": interval(0.9),
        "features_beside_positive": interval(7.0),
        "features_beside_negative": interval(1.0),
        "contribution_change": interval(0.11),
    },
    "antonyms": {"sentences": 160, "reversed": interval(0.73)},
    "negation": {
        "sentences": 500,
        "negated_positive": interval(0.77),
        "negated_negative": interval(0.06),
        "plain_positive": interval(0.96),
        "plain_negative": interval(1.0),
        "dense_positive": None,
        "dense_negative": None,
    },
    "skipped": None,
    "lexicon": None,
}


def test_every_measure_has_a_row_with_its_control():
    heading, rows = context_figures("model", SCORES)
    assert heading == "Do words mean the same in every text? The model on 720 texts"
    values = {name: value for name, value, _ in rows}
    assert values["context-free accuracy"] == "75.8% (73.0% to 78.0%)"
    assert values["label leakage"] == "14.9 (12.0 to 18.0)"
    assert (values["context shifts"], values["negation"], values["independence"]) == ("7.2", "77.0% / 6.0%", "0.73")
    assert (values["antonyms"], values["minimal pairs"], values["leakage in bits"]) == ("73.0%", "0.11", "0.200")
    remarks = {name: remark for name, _, remark in rows}
    assert "full 87.2%, bag of words 80.6%, TF-IDF 82.1%" in remarks["context-free accuracy"]
    assert remarks["label leakage"].endswith("shuffled labels: 0.1")
    assert "dense" not in remarks["negation"]


def test_what_was_not_measured_is_left_out_and_the_reason_given():
    absent = dict.fromkeys(("leakage", "minimal_pairs", "antonyms", "negation"))
    _, rows = context_figures("model", SCORES | absent | {"skipped": "labels are 0, 1"})
    assert [name for name, *_ in rows] == [
        *("context-free accuracy", "label leakage", "context shifts", "independence", "not measured")
    ]
    assert rows[-1][2] == "labels are 0, 1"
    assert rows[1][1] == "–"


def test_the_dense_baseline_stands_beside_negation_where_it_was_given():
    negation = SCORES["negation"] | {"dense_positive": interval(0.9), "dense_negative": interval(0.5)}
    (row,) = [row for row in main_context_rows(SCORES | {"negation": negation}) if row[0] == "negation"]
    assert row[2].endswith("dense baseline: 90.0% / 50.0%")


def test_points_are_hundredths():
    assert points_text(interval(-0.005, -0.02, 0.01)) == "-0.5 (-2.0 to 1.0)"
    assert points_text(interval(float("nan"))) == "–"
