import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.data.examples import Source, TaggedSplit, TextSplit
from lexical_sae.data.splits import Sizes, carve


def source(n=400, classes=3):
    # Sorted by class, as files often are.
    labels = tuple(sorted(i % classes for i in range(n)))
    return Source(tuple("abc"[:classes]), TextSplit(tuple(f"text {i}" for i in range(n)), labels))


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from(["x", "y ", "Y", "z z", "z  z", "w", "v", "u"]), st.integers(0, 1)),
        min_size=60,
        max_size=90,
    )
)
def test_carved_splits_never_share_a_text(rows):
    rows += [(f"own {i}", i % 2) for i in range(80)]
    texts, labels = zip(*rows, strict=True)
    carved = carve(Source(("a", "b"), TextSplit(texts, labels)), Sizes())
    keys = [set(split.keys()) for split in (carved.train, carved.validation, carved.test)]
    assert not keys[0] & keys[1]
    assert not keys[0] & keys[2]
    assert not keys[1] & keys[2]
    assert sum(map(len, (carved.train, carved.validation, carved.test))) == len(rows)


def test_validation_and_test_do_not_depend_on_train_samples_or_seed():
    full, small = carve(source(), Sizes()), carve(source(), Sizes(train=30, seed=7))
    assert (full.validation, full.test) == (small.validation, small.test)
    assert set(small.train.texts) < set(full.train.texts)
    assert sorted(small.train.labels) == [0] * 10 + [1] * 10 + [2] * 10
    assert carve(source(), Sizes(split_seed=1)).test != full.test


def test_train_is_shuffled_by_the_seed():
    first, second = carve(source(), Sizes(seed=1)).train, carve(source(), Sizes(seed=2)).train
    assert set(first.labels[:30]) == {0, 1, 2}
    assert first.texts != second.texts
    assert set(first.texts) == set(second.texts)


def test_identities_travel_with_their_rows():
    n = 200
    split = TextSplit(tuple(map(str, range(n))), (0, 1) * (n // 2), {"x": tuple(float(i) for i in range(n))})
    carved = carve(Source(("a", "b"), split), Sizes(train=50))
    for part in (carved.train, carved.validation, carved.test):
        assert part.identities is not None
        assert part.identities["x"] == tuple(map(float, part.texts))


def test_groups_do_not_straddle_splits():
    n = 300
    groups = tuple(f"prompt {i % 60}" for i in range(n))
    split = TextSplit(tuple(f"{g} answer {i}" for i, g in enumerate(groups)), (0, 1) * (n // 2))
    carved = carve(Source(("a", "b"), split, groups=groups), Sizes())
    prompts = [
        {t.partition(" answer")[0] for t in part.texts} for part in (carved.train, carved.validation, carved.test)
    ]
    assert not prompts[0] & prompts[1]
    assert not prompts[0] & prompts[2]
    assert not prompts[1] & prompts[2]


def test_notes_tell_sizes_and_losses():
    notes = carve(source(classes=3), Sizes(train=2, test=9_999)).notes
    assert any(note.startswith("train: 2 of ") for note in notes)
    assert "train: 1 classes have no row among the 2; ask for more rows" in notes
    assert "test: 9999 rows asked for, all 80 taken" in notes


@pytest.mark.parametrize("size", [0, -2])
def test_a_size_that_means_nothing_is_refused(size):
    with pytest.raises(ValueError, match=f"train_samples is {size}; give a positive number, or -1"):
        Sizes(train=size)


def test_tagged_splits_are_carved_too():
    tokens = tuple((f"word{i}", "x") for i in range(100))
    tags = tuple(("B-PER", "O") if i % 4 == 0 else ("O", "O") for i in range(100))
    carved = carve(Source(("O", "B-PER", "I-PER"), TaggedSplit(tokens, tags)), Sizes())
    assert sum(carved.test.strata()) == 5
    assert len(carved.test) == 20


def test_splits_refuse_columns_of_unequal_length():
    with pytest.raises(ValueError, match="labels has 1 entries for 2 texts"):
        TextSplit(("a", "b"), (0,))
    with pytest.raises(ValueError, match="x has 1 entries for 2 texts"):
        TextSplit(("a", "b"), (0, 1), {"x": (0.0,)})
    with pytest.raises(ValueError, match="sentence 0 has 2 words and 1 tags"):
        TaggedSplit((("a", "b"),), (("O",),))
