import json

import pytest
import torch

from lexical_sae.data.batches import tokenize
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.inference import explain, predict
from lexical_sae.models.bundled import BUNDLED, BundledEncoder, bundled_folder, bundled_head, bundled_origin
from lexical_sae.models.bundled.int8_pack import convert_pack
from lexical_sae.models.dense_baseline import DenseClassifier
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.literal_words import LiteralWords, multi_piece_words
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.recipes import RECIPES, recipe_by_name
from lexical_sae.utils.downloads import sha256_of
from tests import tiny
from tests.models.bundled import packs

LABELS = {"classify": ["negative", "positive"]}
TEXTS = ["good film", "the (good) plot", 'a "boring" Muslim movie', "mawkish", "a mawkish film\nboring"]


@pytest.fixture
def granite(tmp_path, monkeypatch):
    """A tiny encoder from a pack, under the name of the real one; it has no masked-LM head."""
    (tmp_path / "pack").write_bytes(packs.pack()[0])
    folder = tmp_path / "encoder"
    folder.mkdir()
    convert_pack(tmp_path / "pack", folder)

    class Here:
        def fetch(self):
            return folder

    encoder = BundledEncoder(Here(), sha256_of(folder / "model.safetensors"), upstream="someone/model", license="MIT")
    monkeypatch.setitem(BUNDLED, "bundled:granite", encoder)
    return "bundled:granite"


def anchored_model(name):
    return LexicalSAE.from_backbone(recipe_by_name("anchored").model.model_copy(update={"name": name}), LABELS, TEXTS)


def test_literal_words_need_no_lexical_head_and_start_the_same_for_every_seed(granite):
    torch.manual_seed(1)
    first = anchored_model(granite)
    torch.manual_seed(2)
    second = anchored_model(granite)
    heads = [model.backbone.lexical_head() for model in (first, second)]
    assert heads[0].keys() == heads[1].keys()
    assert all(torch.equal(heads[0][name], heads[1][name]) for name in heads[0])
    dense = next(parameter for name, parameter in heads[0].items() if name.endswith("dense.weight"))
    assert torch.equal(dense, torch.eye(len(dense)))


@pytest.mark.parametrize("recipe", sorted(RECIPES.keys() - {"anchored"}))
def test_recipes_that_read_logits_refuse_an_encoder_without_head_and_give_the_remedy(recipe, granite):
    config = recipe_by_name(recipe).model.model_copy(update={"name": granite})
    with pytest.raises(ValueError, match=r"bundled:granite.*fit-lexical-head --encoder bundled:granite.*anchored"):
        LexicalSAE.from_backbone(config, LABELS, TEXTS)


def test_a_model_on_it_is_saved_with_its_origin_and_needs_no_download_to_load(granite, tmp_path, monkeypatch):
    model = anchored_model(granite).eval()
    with torch.no_grad():
        model.head().get_parameter("word_vectors").normal_(generator=torch.Generator().manual_seed(0))
    folder = save_pretrained(model, tmp_path / "saved")
    saved = json.loads((folder / "config.json").read_text())
    assert saved["encoder"] == bundled_origin(granite)
    assert saved["encoder"]["license"] == "MIT"
    monkeypatch.delitem(BUNDLED, granite)
    loaded = from_pretrained(folder)
    assert predict(loaded, TEXTS) == predict(model, TEXTS)
    assert loaded.dimensions.appended == model.dimensions.appended


def test_the_dense_baseline_runs_on_it(granite):
    model = DenseClassifier(granite, 2).eval()
    read = tokenize(model.tokenizer, TEXTS, 32).batch(range(len(TEXTS)))
    assert model(read.input_ids, read.attention_mask).shape == (len(TEXTS), 2)


@pytest.mark.parametrize(("make", "texts"), [(tiny.byte_bpe, TEXTS), (tiny.sentencepiece, TEXTS[:3])])
def test_a_word_is_the_same_with_and_without_a_space_before_it(make, texts):
    """At the start of a text, after a bracket, a quote or a line break, some tokenizers spell words in another way."""
    vocabulary = Vocabulary(make())
    read = tokenize(vocabulary.tokenizer, texts, 64)
    known = multi_piece_words(map(vocabulary.split_words, read.ids), vocabulary)
    literal = LiteralWords.Config(multi_piece_words=known).build(vocabulary)
    names = [*vocabulary.names, *known]
    is_word = [*vocabulary.word_mask.tolist(), *[True] * len(known)]
    for text, ids in zip(texts, read.ids, strict=True):
        own = literal.own_words(torch.tensor([list(ids)]))[0].tolist()
        found = [vocabulary_name(names[word]) for word in own if word != NO_WORD and is_word[word]]
        written = text.replace("(", " ").replace(")", " ").replace('"', " ").split()
        assert found == written
        assert literal.oov_words(ids) == []


def vocabulary_name(name):
    return name.lstrip("Ġ▁")


def test_a_tokenizer_that_minds_no_space_has_no_other_spellings():
    assert Vocabulary(tiny.wordpiece()).other_spellings == {}


def test_cased_words_keep_their_case_and_spans_are_those_of_the_text(granite):
    model = anchored_model(granite).eval()
    with torch.no_grad():
        model.head().get_parameter("word_vectors").fill_(1.0)
    text = "Muslim (good) muslim"
    shown = explain(model, text)
    spans = {text[span.start : span.end] for span in shown.spans or ()}
    assert {"Muslim", "good", "muslim"} <= spans


def test_every_encoder_is_pinned_and_says_where_it_comes_from():
    for name, encoder in BUNDLED.items():
        assert len(encoder.weights_sha256) == 64
        assert encoder.license == "Apache-2.0"
        assert encoder.upstream
        assert encoder.megabytes
        head = bundled_head(name)
        assert head is None or head.is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_the_real_encoder_is_fetched_and_makes_a_model(name):
    assert sha256_of(bundled_folder(name) / "model.safetensors") == BUNDLED[name].weights_sha256
    backbone = load_backbone(name, reads_logits=False).eval()
    read = tokenize(backbone.tokenizer, ["a striker scored", "a footballer hit the net", "my notes are lost"], 32)
    batch = read.batch(range(3))
    mask = batch.attention_mask.bool()
    with torch.no_grad():
        states = backbone.encoder_states(batch.input_ids, mask).masked_fill(~mask[..., None], 0)
    mean = torch.nn.functional.normalize(states.sum(1) / mask.sum(1, keepdim=True), dim=-1)
    assert mean[0] @ mean[1] > mean[0] @ mean[2] + 0.05
