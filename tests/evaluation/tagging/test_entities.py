import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.evaluation.tagging.entities import EntityCounts, score_entities

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
lengths = st.lists(st.integers(0, 7), min_size=1, max_size=4)


@st.composite
def pairs(draw):
    """True and predicted tags of some sentences, valid or not."""
    sizes = draw(lengths)
    draw_tags = [st.lists(st.sampled_from(TAGS), min_size=size, max_size=size) for size in sizes]
    return [draw(one) for one in draw_tags], [draw(one) for one in draw_tags]


def conll_scorer(gold, predicted):
    """What the shared task's scorer counts, word by word: chunks that begin, and chunks open in both."""
    counts = {"given": 0, "found": 0, "right": 0}
    for true, said in zip(gold, predicted, strict=True):
        both_open = False
        before = ("O", "O")
        for now in [*zip(true, said, strict=True), ("O", "O")]:
            begins = [_begins(a, b) for a, b in zip(before, now, strict=True)]
            ends = [_ends(a, b) for a, b in zip(before, now, strict=True)]
            if both_open and all(ends):
                counts["right"] += 1
                both_open = False
            elif both_open and any(ends):
                both_open = False
            if all(begins) and now[0][2:] == now[1][2:]:
                both_open = True
            counts["given"] += begins[0]
            counts["found"] += begins[1]
            before = now
    return EntityCounts(counts["given"], counts["found"], counts["right"])


def _begins(before, now):
    return now != "O" and (now[0] == "B" or before == "O" or before[2:] != now[2:])


def _ends(before, now):
    return before != "O" and (now == "O" or now[0] == "B" or before[2:] != now[2:])


def strict_chunks(tags):
    """Every span that opens with B and goes on with I of one type as far as it can, by trying all spans."""
    found = set()
    for first in range(len(tags)):
        for last in range(first + 1, len(tags) + 1):
            kind = tags[first][2:]
            inside = all(tag == f"I-{kind}" for tag in tags[first + 1 : last])
            stops = last == len(tags) or tags[last] != f"I-{kind}"
            if tags[first] == f"B-{kind}" and inside and stops:
                found.add((kind, first, last))
    return found


@given(pairs())
def test_with_repair_it_counts_as_the_conll_scorer_does(both):
    assert score_entities(*both, repair=True).overall == conll_scorer(*both)


@given(pairs())
def test_without_repair_only_b_opens_an_entity(both):
    gold, predicted = both
    chunks = [(strict_chunks(a), strict_chunks(b)) for a, b in zip(gold, predicted, strict=True)]
    scores = score_entities(gold, predicted)
    wanted = (sum(len(a) for a, _ in chunks), sum(len(b) for _, b in chunks), sum(len(a & b) for a, b in chunks))
    assert scores.overall == EntityCounts(*wanted)
    for kind in ("PER", "LOC"):
        own = [({c for c in a if c[0] == kind}, {c for c in b if c[0] == kind}) for a, b in chunks]
        counts = (sum(len(a) for a, _ in own), sum(len(b) for _, b in own), sum(len(a & b) for a, b in own))
        assert scores.types.get(kind, EntityCounts(0, 0, 0)) == EntityCounts(*counts)
    assert list(scores.sentences_right) == [a == b for a, b in chunks]


def test_by_hand():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"]]
    said = [["B-PER", "O", "O", "B-LOC"], ["O", "B-PER"]]
    scores = score_entities(gold, said)
    assert scores.overall == EntityCounts(gold=3, predicted=3, correct=1)
    assert scores.overall.f1 == pytest.approx(1 / 3)
    assert scores.types == {"LOC": EntityCounts(2, 1, 1), "PER": EntityCounts(1, 2, 0)}
    assert scores.types["LOC"].as_dict() == pytest.approx(
        {"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "gold": 2, "predicted": 1, "correct": 1}
    )
    assert scores.token_accuracy == 4 / 6


def test_nothing_to_find_and_nothing_found_is_zero_not_an_error():
    scores = score_entities([["O"]], [["O"]])
    assert scores.overall.f1 == scores.overall.precision == scores.overall.recall == 0.0
    assert score_entities([], []).token_accuracy == 0.0


@pytest.mark.parametrize(
    ("gold", "said", "message"),
    [([["O"]], [], "1 true sentences and 0 predicted"), ([["O", "O"]], [["O"]], "2 true tags and 1 predicted")],
)
def test_what_does_not_fit_together_is_refused(gold, said, message):
    with pytest.raises(ValueError, match=message):
        score_entities(gold, said)
