from lexical_sae.data import TaggedDataset, TaggedSplit, TextDataset, TextSplit


def test_a_data_set_prints_in_one_short_line_whatever_it_holds():
    text = TextSplit(("a warm, funny film",) * 900, (0,) * 900)
    tagged = TaggedSplit((("Anna",),) * 70, (("B-PER",),) * 70)
    assert repr(text) == "TextSplit(900 texts)"
    assert repr(tagged) == "TaggedSplit(70 sentences)"
    reviews = TextDataset("reviews", ("bad", "good"), text, text.take(range(9)), text.take([0]), ("a note",) * 50)
    assert repr(reviews) == "TextDataset('reviews', 2 classes, train=900, validation=9, test=1)"
    names = TaggedDataset("names", ("O", "B-PER", "I-PER"), tagged, tagged, tagged)
    assert repr(names) == "TaggedDataset('names', 3 tags, train=70, validation=70, test=70)"
