"""A lexical head learns to name the words of a text, leaves the encoder alone, and the one we ship keeps its word."""

import gzip
import json
import random

import pytest
import torch
import typer
from safetensors.torch import load_file
from typer.testing import CliRunner

from lexical_sae.commands.fit_lexical_head import fit_lexical_head as command
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.models.bundled import BUNDLED
from lexical_sae.models.pretrained import HEAD_FILE, load_backbone, load_lexical_head, open_safetensors
from lexical_sae.studies.lexical_head.fitting import CARD_FILE, fit_lexical_head, round_to_half, save_lexical_head
from lexical_sae.studies.lexical_head.objective import embedding_neighbours, sample_candidates
from lexical_sae.studies.lexical_head.scores import (
    head_logits,
    identity_logits,
    lower_case_words,
    measure_scale,
    score_relatedness,
    score_top_k,
)
from lexical_sae.studies.lexical_head.settings import LexicalHeadSettings
from lexical_sae.studies.lexical_head.states import Corruption, encode_positions
from lexical_sae.studies.lexical_head.text import cut, sample_pieces, scan_text, split_text
from lexical_sae.studies.lexical_head.wordnet import WordNet
from lexical_sae.utils.downloads import sha256_of
from tests.tiny import WORDS, backbone, masked_lm, wordpiece

SHIPPED = BUNDLED["bundled:minilm"].lexical_head
QUICK = LexicalHeadSettings(
    tokens=6000,
    held_out_tokens=600,
    batch_size=256,
    passes=6,
    check_every=20,
    neighbours=3,
    cached_tokens=3000,
    frequency_threshold=1.0,
)


@pytest.fixture(autouse=True)
def one_thread():
    """Threads only wait for each other on models this small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def text_file(tmp_path):
    """Invented sentences over the small vocabulary, a blank line after every third."""
    rng = random.Random(0)
    whole = [word for word in WORDS if not word.startswith("##") and word.isalpha()]
    lines = [" ".join(rng.choices(whole, k=rng.randint(5, 15))) + " ." for _ in range(900)]
    path = tmp_path / "invented text.txt"
    path.write_text("\n".join(line + "\n" * (i % 3 == 2) for i, line in enumerate(lines)), encoding="utf-8")
    return path


def split_of(path, model, settings=QUICK):
    vocabulary = Vocabulary(model.tokenizer, model.vocab_size)
    split = split_text(
        [path],
        vocabulary,
        tokens=settings.tokens,
        held_out_tokens=settings.held_out_tokens,
        longest=20,
        seed=settings.seed,
    )
    return split, vocabulary


def top_1(model, pieces, vocabulary):
    positions = encode_positions(model, pieces, vocabulary)
    return score_top_k(head_logits(model), positions.states, positions.targets).top1


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_head_learns_to_name_the_words_and_the_encoder_stays(family, text_file):
    model = backbone(family)
    before = {name: tensor.clone() for name, tensor in model.encoder.state_dict().items()}
    split, vocabulary = split_of(text_file, model)
    chance = top_1(model, split.held_out, vocabulary)
    seen = []
    report = fit_lexical_head(model, split, QUICK, lambda what, done: seen.append((what, done)))
    assert chance < 0.1
    assert top_1(model, split.held_out, vocabulary) > 0.5
    assert min(report.validation_losses) < report.validation_losses[0]
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.encoder.state_dict().items())
    assert {what for what, _ in seen} == {"encoding text", "fitting"}
    assert all(0 <= done <= 1 for _, done in seen)
    assert [done for _, done in seen] == sorted(done for _, done in seen)


def test_kept_parameters_are_those_of_the_lowest_validation_loss(text_file):
    model = backbone()
    split, _ = split_of(text_file, model)
    # A far too high rate makes the loss go up and down.
    report = fit_lexical_head(model, split, QUICK.model_copy(update={"learning_rate": 0.5, "patience": 2}))
    again = fit_lexical_head(model, split, QUICK.model_copy(update={"learning_rate": 1e-12, "passes": 1}))
    assert again.validation_losses[0] == pytest.approx(min(report.validation_losses), rel=1e-5)


def test_same_seed_gives_the_same_head(text_file):
    heads = []
    for _ in range(2):
        model = backbone()
        fit_lexical_head(model, split_of(text_file, model)[0], QUICK.model_copy(update={"passes": 1}))
        heads.append({name: parameter.detach() for name, parameter in model.lexical_head().items()})
    assert all(torch.equal(heads[0][name], heads[1][name]) for name in heads[0])


def test_held_out_pieces_never_occur_in_training(text_file):
    split, _ = split_of(text_file, backbone())
    assert split.held_out
    assert split.validation
    assert set(split.held_out).isdisjoint(split.training)
    assert set(split.held_out).isdisjoint(split.validation)
    assert set(split.validation).isdisjoint(split.training)


def test_saved_head_loads_back_equal_and_the_card_has_its_hash(tmp_path):
    model = backbone(seed=1)
    save_lexical_head(model, tmp_path / "head", {"what": "a test"})
    assert sorted(path.name for path in (tmp_path / "head").iterdir()) == [CARD_FILE, HEAD_FILE]
    card = json.loads((tmp_path / "head" / CARD_FILE).read_text(encoding="utf-8"))
    assert card["sha256"][HEAD_FILE] == sha256_of(tmp_path / "head" / HEAD_FILE)
    other = backbone(seed=2)
    load_lexical_head(other, tmp_path / "head")
    for name, parameter in model.lexical_head().items():
        assert torch.equal(parameter, other.lexical_head()[name])


def test_a_head_in_half_precision_is_half_as_large_and_loads_as_it_was_scored(tmp_path):
    model, other = backbone(seed=1), backbone(seed=2)
    whole = {name: parameter.clone() for name, parameter in model.lexical_head().items()}
    save_lexical_head(model, tmp_path / "whole", {})
    round_to_half(model)
    save_lexical_head(model, tmp_path / "half", {}, torch.float16)
    sizes = [sum(part.nbytes for part in load_file(tmp_path / name / HEAD_FILE).values()) for name in ("half", "whole")]
    assert 2 * sizes[0] == sizes[1]
    load_lexical_head(other, tmp_path / "half")
    for name, parameter in model.lexical_head().items():
        assert torch.equal(parameter, other.lexical_head()[name])
        torch.testing.assert_close(parameter, whole[name], rtol=1e-3, atol=1e-6)
    assert any(not torch.equal(parameter, whole[name]) for name, parameter in model.lexical_head().items())


def test_softmax_over_all_candidates_is_the_exact_one():
    logits = torch.randn(5, 40)
    targets = torch.tensor([3, 3, 7, 39, 0])
    words = sample_candidates(targets, 40, 40, torch.Generator().manual_seed(0))
    picked = (logits[:, words.ids] + words.log_weight).log_softmax(1).gather(1, words.place[targets][:, None])[:, 0]
    assert torch.allclose(picked, logits.log_softmax(1).gather(1, targets[:, None])[:, 0], atol=1e-6)


def test_few_candidates_stand_for_all_words_on_average():
    logits = torch.randn(400)
    required = torch.tensor([1, 2, 3])
    generator = torch.Generator().manual_seed(0)
    draws = [sample_candidates(required, 400, 20, generator) for _ in range(3000)]
    sums = torch.stack([(logits[words.ids] + words.log_weight).exp().sum() for words in draws])
    assert sums.mean().item() == pytest.approx(logits.exp().sum().item(), rel=0.02)


def test_neighbours_are_the_nearest_words_and_other_tokens_have_none():
    weight = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [1.0, 0.01]])
    near = embedding_neighbours(weight, torch.tensor([True, True, True, False]), 1, 0.1)
    assert near.ids[:2, 0].tolist() == [1, 0]
    assert near.shares.sum(1).tolist() == pytest.approx([1, 1, 1, 0])


def test_pieces_are_cut_between_words_and_lose_nothing():
    ids = list(range(200))
    continues = [i % 3 == 1 for i in ids]
    pieces = cut(ids, continues, 30, random.Random(0))
    assert [i for piece in pieces for i in piece] == ids
    assert not any(continues[piece[0]] for piece in pieces)
    assert max(map(len, pieces)) <= 30


def test_masked_positions_ask_for_the_hidden_token_and_swapped_ones_for_the_new():
    model = backbone()
    vocabulary = Vocabulary(model.tokenizer, model.vocab_size)
    pieces = [tuple(range(6, 6 + length)) for length in (4, 9, 17)]
    clean = encode_positions(model, pieces, vocabulary)
    masked = encode_positions(model, pieces, vocabulary, corruption=Corruption(1.0, masked=0.5, swapped=0.0))
    swapped = encode_positions(model, pieces, vocabulary, corruption=Corruption(1.0, masked=0.0, swapped=1.0))
    assert not clean.is_masked.any()
    assert 5 < masked.is_masked.sum() < 25
    assert torch.equal(masked.targets, clean.targets)
    assert (swapped.targets != clean.targets).float().mean() > 0.8
    assert vocabulary.feature_mask[swapped.targets].all()


def test_states_do_not_depend_on_the_pieces_beside_them():
    model = backbone()
    vocabulary = Vocabulary(model.tokenizer, model.vocab_size)
    pieces = [tuple(range(6, 6 + length)) for length in (12, 3, 7)]
    together = encode_positions(model, pieces, vocabulary)
    # Shorter pieces come first in the result.
    alone = [encode_positions(model, [pieces[i]], vocabulary) for i in (1, 2, 0)]
    assert torch.allclose(together.states, torch.cat([part.states for part in alone]), atol=2e-3)


def test_beginning_and_rest_of_a_word_are_not_whole_words():
    model = backbone()
    vocabulary = Vocabulary(model.tokenizer, model.vocab_size)
    ids = wordpiece()("good playing dog", add_special_tokens=False)["input_ids"]
    positions = encode_positions(model, [tuple(ids)], vocabulary)
    assert positions.is_whole_word.tolist() == [True, False, False, True]


def test_gzip_bom_and_crlf_read_as_plain_text(tmp_path):
    content = "\ufefffirst document\r\nmore of it\r\n\r\nsecond one\r\n".encode()
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(content))
    sizes = [scan_text(tmp_path / name) for name in ("a.txt", "b.txt.gz")]
    assert sizes[0] == sizes[1]
    assert (sizes[0].documents, sizes[0].characters) == (2, 34)


def test_without_blank_lines_each_line_is_a_document(tmp_path):
    (tmp_path / "a.txt").write_text("one good film\ntwo good films\n", encoding="utf-8")
    assert scan_text(tmp_path / "a.txt").documents == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", b"", "holds no text"),
        ("blank.txt", b"\n  \n\n", "holds no text"),
        ("latin.txt", b"good\ncaf\xe9 film\n", "line 2: not UTF-8"),
        ("broken.gz", gzip.compress(b"good film\n" * 500)[:40], "not a whole gzip file"),
        ("plain.gz", b"good film\n", "not a whole gzip file"),
    ],
    ids=["empty", "blank", "latin-1", "truncated gzip", "not gzip"],
)
def test_unreadable_text_is_refused_with_the_reason(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        scan_text(tmp_path / name)


def test_missing_file_folder_and_single_document_are_refused(tmp_path):
    vocabulary = Vocabulary(wordpiece())
    with pytest.raises(FileNotFoundError, match="no text file"):
        sample_pieces(tmp_path / "nowhere.txt", vocabulary, tokens=9, longest=9, seed=0)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        scan_text(tmp_path)
    (tmp_path / "one.txt").write_text("a good film", encoding="utf-8")
    with pytest.raises(ValueError, match="holds 1 document"):
        split_text([tmp_path / "one.txt"], vocabulary, tokens=9, held_out_tokens=9, longest=9, seed=0)


def test_loss_that_is_not_finite_stops_with_the_knob_to_turn(text_file):
    model = backbone()
    with torch.no_grad():
        model.decoder.bias.fill_(float("nan"))
    with pytest.raises(ValueError, match="learning rate"):
        fit_lexical_head(model, split_of(text_file, model)[0], QUICK)


# Scores


def test_top_k_counts_ranks():
    logits = torch.tensor([[9.0, 1, 2, 3, 4, 5], [9, 8, 7, 6, 5, 4], [9, 8, 7, 6, 5, 4]])
    found = score_top_k(lambda states: logits[: len(states)], torch.zeros(3, 2), torch.tensor([0, 2, 5]))
    assert (found.top1, found.top5) == pytest.approx((1 / 3, 2 / 3))


def test_scale_reads_the_ranking():
    logits = torch.arange(201.0)[None]
    scale = measure_scale(lambda _: logits, torch.zeros(1, 2), torch.tensor([200]))
    assert (scale.token, scale.rank_2, scale.rank_10, scale.rank_100) == (200, 199, 191, 101)
    assert scale.median == 100


def test_no_positions_is_an_error_not_a_division_by_zero():
    with pytest.raises(ValueError, match="more held-out text"):
        score_top_k(lambda states: states, torch.zeros(0, 8), torch.zeros(0, dtype=torch.long))


# A hand-written WordNet: {bad, awful} > {terrible}; film > movie; good (adj) + goodness (noun).
NOUNS = """\
  1 This line stands for the licence.
00000001 03 n 01 film 0 001 ~ 00000002 n 0000 | a picture
00000002 03 n 02 movie 0 motion_picture 0 001 @ 00000001 n 0000 | a kind of film
00000003 03 n 02 goodness 0 virtue 0 001 + 00000001 a 0101 | being good
00000004 03 n 01 city 0 000 | a place
"""
ADJECTIVES = """\
00000001 00 a 02 good 0 well(p) 0 001 + 00000003 n 0101 | of quality
00000002 00 s 02 bad 0 awful 0 001 & 00000003 a 0000 | of no quality
00000003 00 a 01 terrible 0 000 | dreadful
"""


@pytest.fixture
def wordnet(tmp_path):
    folder = tmp_path / "wordnet"
    folder.mkdir()
    files = {"noun": NOUNS, "adj": ADJECTIVES, "verb": "00000009 30 v 01 play 0 000 | to play\n", "adv": ""}
    for part, content in files.items():
        (folder / f"data.{part}").write_text(content, encoding="utf-8")
        (folder / f"{part}.exc").write_text("better good\n" if part == "adj" else "", encoding="utf-8")
    return WordNet(folder)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("bad", "awful"),
        ("film", "movie"),
        ("movie", "film"),
        ("films", "movie"),
        ("good", "goodness"),
        ("goodness", "good"),
        ("better", "good"),
        ("cities", "city"),
        ("playing", "played"),
        ("good", "well"),
    ],
)
def test_synonym_hypernym_hyponym_derivation_and_lemma_are_related(wordnet, word, other):
    assert wordnet.is_related(word, other)


@pytest.mark.parametrize(
    ("word", "other"),
    [("good", "bad"), ("film", "city"), ("good", "virtue"), ("bad", "terrible"), ("zzz", "zzz"), ("good", "")],
)
def test_other_pairs_are_not_related(wordnet, word, other):
    assert not wordnet.is_related(word, other)


def test_wordnet_that_is_missing_or_damaged_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="wordnet-base"):
        WordNet(tmp_path)
    for part in ("noun", "verb", "adj", "adv"):
        (tmp_path / f"data.{part}").write_text("00000001 03 n 01 film\n", encoding="utf-8")
    with pytest.raises(ValueError, match="data.noun, line 1"):
        WordNet(tmp_path)


def test_relatedness_counts_relatives_after_the_word_itself(wordnet):
    vocabulary = Vocabulary(wordpiece())
    names = list(vocabulary.names)
    ranking = ["bad", "awful", "film", "##ing", "[CLS]"]
    logits = torch.zeros(1, len(names))
    for height, word in enumerate(reversed(ranking)):
        logits[0, names.index(word)] = 10.0 + height
    assert lower_case_words(vocabulary)[names.index("bad")]
    found = score_relatedness(
        lambda _: logits, torch.zeros(1, 2), torch.tensor([names.index("bad")]), vocabulary, wordnet
    )
    assert found.related_of_10 == 1


# The command


def run_command(*arguments):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.usefixtures("wordnet")
def test_command_writes_a_head_that_loads_and_a_card_without_machine_paths(text_file, tmp_path):
    folder = tmp_path / "small encoder"
    saved = masked_lm()
    saved.save_pretrained(folder)
    wordpiece().save_pretrained(folder)
    out = tmp_path / "made" / "head"
    result = run_command(
        "--text", text_file, "--out", out, "--encoder", folder, "--tokens", 3000, "--held-out-tokens", 300,
        "--held-out-text", f"other={text_file}", "--wordnet", tmp_path / "wordnet", "--device", "cpu",
        "--passes", 300,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    load_backbone(str(folder), lexical_head=out)
    card = json.loads((out / CARD_FILE).read_text(encoding="utf-8"))
    assert card["scores"]["held_out"]["wordnet"]["positions"] > 0
    assert set(card["scores"]) == {"held_out", "other"}
    assert str(tmp_path) not in json.dumps(card)


def test_a_head_that_is_worse_than_none_is_not_written(text_file, tmp_path):
    folder, out = tmp_path / "encoder", tmp_path / "head"
    masked_lm().save_pretrained(folder)
    wordpiece().save_pretrained(folder)
    result = run_command(
        "--text", text_file, "--out", out, "--encoder", folder, "--tokens", 300, "--held-out-tokens", 300,
        "--device", "cpu", "--passes", 1,
    )  # fmt: skip
    assert result.exit_code == 1
    assert "nothing was written" in result.output
    assert not (out / CARD_FILE).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "nowhere.txt"], "no text file at nowhere.txt"),
        (["--text", "nowhere.txt", "--held-out-text", "news"], "is not NAME=FILE"),
        (["--text", "nowhere.txt", "--learning-rate", "-1"], "--learning-rate"),
        (["--text", "nowhere.txt", "--wordnet", "nowhere"], "holds no WordNet"),
    ],
)
def test_command_explains_a_slip_and_fails(tmp_path, arguments, message):
    result = run_command(*arguments, "--out", tmp_path / "head")
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


# The head we ship


def test_shipped_head_is_small_and_fits_the_bundled_encoder():
    path = SHIPPED / HEAD_FILE
    assert path.stat().st_size < 1_000_000
    with open_safetensors(path) as file:
        shapes = sorted(tuple(file.get_slice(key).get_shape()) for key in file.keys())  # noqa: SIM118
    assert shapes == [(384,), (384,), (384,), (384, 384), (30522,)]
    assert "Apache License" in (SHIPPED / "LICENSE-all-MiniLM-L6-v2.txt").read_text(encoding="utf-8")


def test_card_of_the_shipped_head_describes_it_and_meets_the_bars():
    card = json.loads((SHIPPED / CARD_FILE).read_text(encoding="utf-8"))
    assert card["sha256"][HEAD_FILE] == sha256_of(SHIPPED / HEAD_FILE)
    assert card["encoder"]["model.safetensors sha256"] == BUNDLED["bundled:minilm"].weights_sha256
    held_out, news = card["scores"]["held_out"], card["scores"]["news"]
    assert held_out["unmasked"]["top1"] >= 0.95
    assert held_out["unmasked"]["top5"] >= 0.99
    # Text of another kind, without a promise: a guard against shipping a worse head, set just below what was measured.
    assert news["unmasked"]["top1"] >= 0.93
    assert news["unmasked"]["top5"] >= 0.985
    related = held_out["wordnet"]["related_of_10"]
    assert related > held_out["identity_transform"]["wordnet"]["related_of_10"]
    assert related > 10 * held_out["before_fitting"]["wordnet"]["related_of_10"]


@pytest.mark.slow
def test_shipped_head_names_the_words_of_invented_sentences(tmp_path):
    lines = [
        "The dreadful weather ruined our picnic, so we drove home early.",
        "A clever little comedy with warm performances and a weak ending.",
        "Shares of the airline fell sharply after the company cut its forecast.",
        "She plays the violin in a small orchestra near the harbour.",
        "boring",
        "great food",
    ]
    (tmp_path / "invented.txt").write_text("\n".join(lines), encoding="utf-8")
    model = load_backbone("bundled:minilm").eval()
    vocabulary = Vocabulary(model.tokenizer, model.vocab_size)
    pieces = sample_pieces(tmp_path / "invented.txt", vocabulary, tokens=500, longest=126, seed=0)
    positions = encode_positions(model, pieces, vocabulary)
    fitted = score_top_k(head_logits(model), positions.states, positions.targets)
    plain = score_top_k(identity_logits(model), positions.states, positions.targets)
    assert fitted.top1 >= 0.93
    assert fitted.top1 > plain.top1 + 0.1
