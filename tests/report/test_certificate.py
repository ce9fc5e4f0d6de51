from lexical_sae.report.certificate import certificate_view
from tests.report.test_lexicon import rendered

CERTIFICATE = {"construction": {"removed": [{"name": "woman"}]}, "not_claimed": "Nothing is claimed about meaning."}
LEAKAGE = {
    "concept": "gender[b]",
    "majority": 0.5,
    "scores": [{"representation": "words left", "probe": "trees", "accuracy": 0.731, "low": 0.7, "high": 0.76}],
}


def test_a_certificate_shows_the_levels_it_holds_and_no_other():
    first = rendered(certificate_view(CERTIFICATE))
    assert "woman" in first
    assert "Nothing is claimed about meaning." in first
    assert "Level 2" not in first
    assert "Level 3" not in first
    third = rendered(certificate_view({**CERTIFICATE, "leakage": LEAKAGE}))
    assert "Level 3: how well gender[b]" in third
    assert "73.1%" in third
    assert "70.0% to 76.0%, trees" in third
    assert "50.0%" in third
