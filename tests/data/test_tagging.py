import itertools
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data.tagging import (
    Entity,
    align_tags_to_subwords,
    decode_valid_tags,
    detect_scheme,
    encode_tags,
    entity_spans,
    from_iob2,
    parse_tag,
    repair_iob2,
    to_iob2,
)

NAMES = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
ANY_TAGS = st.lists(st.sampled_from(NAMES), max_size=12)


@given(ANY_TAGS, st.sampled_from(["IOB1", "IOB2", "BIOES"]))
def test_every_scheme_round_trips(tags, scheme):
    tags = repair_iob2(tags)
    assert to_iob2(from_iob2(tags, scheme), scheme) == tags


@given(st.lists(ANY_TAGS, max_size=5))
def test_a_detected_scheme_reads_back_the_same_entities(sequences):
    sequences = [repair_iob2(tags) for tags in sequences]
    for scheme in ("IOB1", "IOB2", "BIOES"):
        written = [from_iob2(tags, scheme) for tags in sequences]
        detected = detect_scheme(written)
        assert [to_iob2(tags, detected) for tags in written] == sequences


def test_iob1_with_a_slip_is_still_iob1():
    assert detect_scheme([["I-PER", "O", "I-LOC", "B-LOC"], ["O", "B-PER", "I-PER"]]) == "IOB1"


def test_iob2_with_an_orphan_is_still_iob2_and_is_repaired():
    tags = ["B-PER", "O", "B-LOC", "O", "I-PER"]
    assert detect_scheme([tags]) == "IOB2"
    assert repair_iob2(tags) == ["B-PER", "O", "B-LOC", "O", "B-PER"]


@given(ANY_TAGS)
def test_entity_spans_equal_seqeval_strict(tags):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from seqeval.scheme import IOB2, Entities
    expected = [(e.tag, e.start, e.end) for e in Entities([tags], IOB2).entities[0]]
    assert [(e.type, e.start, e.end) for e in entity_spans(tags)] == expected


def test_a_type_may_hold_dashes_and_brackets():
    assert entity_spans(["B-<b>a-b</b>", "I-<b>a-b</b>"]) == [Entity("<b>a-b</b>", 0, 2)]


@pytest.mark.parametrize("tag", ["PER", "X-PER", "B-", "-PER", "", "o", "BI-PER"])
def test_an_unknown_tag_is_named(tag):
    with pytest.raises(ValueError, match="is unknown; write 'O'"):
        parse_tag(tag)


def test_encoding_names_place_and_suggestion():
    assert encode_tags(["O", "I-PER"], NAMES) == [0, 4]
    with pytest.raises(ValueError, match=r"eng.train:7, word 1: tag 'B-PERS' is unknown; did you mean 'B-PER'\?"):
        encode_tags(["O", "B-PERS"], NAMES, place="eng.train:7")


def test_first_subword_carries_the_tag():
    aligned = align_tags_to_subwords([None, 0, 0, 1, None], [3, 5])
    assert aligned.label_ids == (-100, 3, -100, 5, -100)
    assert aligned.vanished == aligned.cut == ()


def test_a_word_without_subwords_is_reported_and_shifts_nothing():
    aligned = align_tags_to_subwords([None, 0, 2, 2, None], [3, 4, 5, 6, 7])
    assert aligned.label_ids == (-100, 3, 5, -100, -100)
    assert aligned.vanished == (1,)
    assert aligned.cut == (3, 4)


def test_more_words_than_tags_is_an_error():
    with pytest.raises(ValueError, match="belong to 3 words, but there are 2 tags"):
        align_tags_to_subwords([0, 1, 2], [1, 1])


def is_valid(tags):
    return repair_iob2(tags) == list(tags)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_decoding_is_the_best_valid_sequence(seed, length):
    logits = torch.randn(length, len(NAMES), generator=torch.Generator().manual_seed(seed)) * 2

    def score(path):
        return sum(logits[i, tag].double().item() for i, tag in enumerate(path))

    paths = itertools.product(range(len(NAMES)), repeat=length)
    best = max((p for p in paths if is_valid([NAMES[t] for t in p])), key=score)
    assert decode_valid_tags(logits, NAMES) == list(best)


def test_decoding_repairs_what_argmax_gets_wrong():
    logits = torch.tensor([[2.0, 1.9, 0, 0, 0], [0, 0, 3.0, 0, 0]])
    assert not is_valid([NAMES[t] for t in logits.argmax(-1)])
    assert [NAMES[t] for t in decode_valid_tags(logits, NAMES)] == ["B-LOC", "I-LOC"]


def test_decoding_refuses_nan_and_takes_nothing():
    assert decode_valid_tags(torch.zeros(0, 5), NAMES) == []
    with pytest.raises(ValueError, match="NaN"):
        decode_valid_tags(torch.full((2, 5), torch.nan), NAMES)


def test_an_unknown_scheme_is_refused():
    with pytest.raises(ValueError, match="'IOB3' is unknown; did you mean 'IOB"):
        to_iob2(["O"], "IOB3")
