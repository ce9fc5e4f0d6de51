"""What people feed a tagger: files of every scheme and line end, broken ones, and sentences of every length."""

import json

import pytest
import torch

from lexical_sae.commands import tag as tag_command
from lexical_sae.data import TaggedSplit
from lexical_sae.data.sources.conll import read_conll, tagged_source
from lexical_sae.data.tagging import from_iob2, repair_iob2
from lexical_sae.evaluation.tagging.entities import score_entities
from lexical_sae.evaluation.tagging.performance import score_tagger
from lexical_sae.inference.reasons import find_reasons
from lexical_sae.inference.tag_explaining import explain_tags
from lexical_sae.inference.tagging import tag
from lexical_sae.inference.word_decisions import read_words, words_of
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.persistence import save_pretrained
from lexical_sae.training.tasks import positions
from tests import tiny

TAGS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
SENTENCES = [
    (["The", "Muslim", "Bank", "was", "good"], ["O", "B-PER", "I-PER", "O", "O"]),
    (["Dogs", "River", "City", "play"], ["B-PER", "B-PER", "B-LOC", "O"]),
    (["film"], ["O"]),
]
NOTHING = "\u200b"


@pytest.fixture(scope="module")
def model():
    return tiny.model(ModelConfig.model_validate({"gate": "drelu", "shapes": {}}))


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    return save_pretrained(model, tmp_path_factory.mktemp("tagger") / "model")


def write(path, scheme="IOB2", newline="\n", first="-DOCSTART- -X- O O\n\n", last="\n"):
    """The sentences in four columns, as CoNLL-2003 has them."""
    blocks = [
        "\n".join(f"{word} NN I-NP {name}" for word, name in zip(words, from_iob2(tags, scheme), strict=True))
        for words, tags in SENTENCES * 8
    ]
    path.write_text((first + "\n\n".join(blocks) + last).replace("\n", newline), newline="")
    return path


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "BIOES"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(
    "around",
    [{}, {"first": ""}, {"first": "\ufeff"}, {"last": ""}, {"last": "\n\n\n\n-DOCSTART- -X- O O\n\n"}],
    ids=["docstart", "bare", "BOM", "no end", "empty document"],
)
def test_the_same_sentences_come_from_every_way_of_writing_them(tmp_path, scheme, newline, around):
    path = write(tmp_path / "train.txt", scheme, newline, **around)
    table = read_conll(path)
    assert [list(words) for words in table.column("tokens")] == [words for words, _ in SENTENCES] * 8
    source = tagged_source(table, None, None)
    assert source.names == tuple(TAGS)
    assert [list(tags) for tags in source.train.tags] == [tags for _, tags in SENTENCES] * 8


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "BIOES"])
def test_tags_that_were_printed_read_back_as_the_same_entities(saved, tmp_path, capsys, scheme):
    given = write(tmp_path / "given.txt", newline="\r\n")
    tag_command.tag(saved, file=given, as_json=True)
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    tag_command.tag(saved, file=given, conll=scheme)
    (tmp_path / "said.txt").write_text(capsys.readouterr().out)
    table = read_conll(tmp_path / "said.txt")
    assert [list(words) for words in table.column("tokens")] == [sentence["words"] for sentence in said]
    printed = [list(tags) for tags in table.column("tags")]
    assert printed == [from_iob2(sentence["tags"], scheme) for sentence in said]
    assert any(sentence["entities"] for sentence in said)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("Bank B-ORG\nwas PER\n", r"odd\.txt:2: tag 'PER' is unknown"),
        ("Bank B-ORG\nwas\n", r"odd\.txt:2 has 1 columns, the first word line has 2"),
        ("-DOCSTART- O\r\n\r\n", "holds no sentence"),
        ("", "holds no sentence"),
    ],
    ids=["unknown tag", "no tag", "no sentence", "empty file"],
)
def test_a_broken_file_is_refused_with_its_line(saved, tmp_path, lines, message):
    path = tmp_path / "odd.txt"
    path.write_text(lines, newline="")
    with pytest.raises(ValueError, match=message):
        tag_command.tag(saved, file=path)


def test_an_inside_without_a_beginning_is_an_entity_and_is_counted(tmp_path):
    path = tmp_path / "orphans.txt"
    path.write_text("a O\nBank I-ORG\n\nfilm B-ORG\n\nRiver B-LOC\nwas O\n")
    source = tagged_source(read_conll(path), None, None)
    assert source.train.tags[0] == ("O", "B-ORG")
    assert any("I- without B- in 1 sentences" in note and "orphans.txt:1" in note for note in source.notes)


def test_tags_that_do_not_fit_their_words_are_refused_before_training(model):
    names = model.labels["tag"]
    for tags, message in (
        (("O", "B-ORG"), "sentence 0, word 1: tag 'B-ORG' is unknown"),
        (("O",), "sentence 0 has 2 words and 1 tags"),
    ):
        with pytest.raises(ValueError, match=message):
            positions(model.tokenizer, TaggedSplit((("a", "Bank"),), (tags,)), names, 16, model.shapes)
    with pytest.raises(ValueError, match="sentence 0 has 2 true tags and 1 predicted"):
        score_entities([["O", "O"]], [["O"]])


def test_a_sentence_of_5000_words_is_tagged_whole_and_can_be_asked_about():
    model, words = tiny.model(), ["the", "Bank", "was", NOTHING, "good"] * 1000
    (found,) = tag(model, [words])
    assert len(found.tags) == 5000
    assert repair_iob2(found.tags) == list(found.tags)
    assert any(entity.start > 4900 for entity in found.entities)
    why = find_reasons(model, words, word=4001, max_nodes=1)
    assert (why.text.split(" ")[4001], why.tokens_cut) == ("Bank", 0)
    (read,) = read_words(model, [words], words_of(model, [words]), only={(0, 4001)})
    assert why.label == model.labels["tag"][int(read.state.logits.argmax())]


@pytest.mark.parametrize("empty", ["", " \t\n", [], [NOTHING], ["", " "]], ids=repr)
def test_a_sentence_without_words_has_no_entities(model, empty):
    alone, beside = tag(model, [empty])[0], tag(model, ["Bank", empty, "film"])[1]
    assert alone == beside
    assert set(alone.tags) <= {"O"}
    assert explain_tags(model, empty) == []
    assert score_tagger(model, TaggedSplit((alone.words,), (alone.tags,)), (1,)).active_words == 0


def test_tags_do_not_depend_on_what_else_is_read(model):
    sentences = [["Bank"] * n + [NOTHING] for n in (1, 40, 7, 90, 3)]
    together = tag(model, sentences, batch_size=5)
    torch.manual_seed(3)
    for n in torch.randperm(5).tolist():
        assert tag(model, [sentences[n]])[0] == together[n]
