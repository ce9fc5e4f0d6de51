"""Training on texts of several windows: the encoder reads some in a step, the table and validation all of them."""

import pytest
import torch

from lexical_sae.data.batches import LONG_TEXT, TokenizedTexts, length_buckets, tokenize
from lexical_sae.models.long_texts import Windows, read_at_once, windows_of
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.recipes import recipe_by_name
from lexical_sae.training import frozen_layers
from lexical_sae.training.baselines.frozen import mean_states
from lexical_sae.training.loop import Trainer
from lexical_sae.training.loss import independence
from lexical_sae.training.loss.independence import change_of_others
from lexical_sae.training.samples import ReadTokens
from lexical_sae.training.tasks import Documents
from lexical_sae.training.word_table import default_activations, word_vectors
from tests import tiny
from tests.literal import batch_of, literal_model
from tests.tiny import BAD, GOOD

WINDOW = 10
FILLER = "the dogs play near the bank and money is not happy . "
TEXTS = [f"{FILLER * (1 + i % 3)}{text}" for i, text in enumerate((GOOD + BAD) * 4)]
LABELS = ([0] * 4 + [2] * 4) * 4


def documents(model, most_windows=None):
    labels = torch.tensor(LABELS, dtype=torch.long)
    return Documents(tokenize(model.tokenizer, TEXTS, model.max_length), labels, most_windows=most_windows)


def trainer(**changes):
    model = literal_model(max_length=WINDOW, shifting=False)
    fixed = {"max_epochs": 2, "batch_size": 8, "negations": 0.0, "checkpoint_minutes": 60.0}
    settings = recipe_by_name("anchored").training.model_copy(update=fixed | changes)
    return Trainer(model, documents(model), documents(model), settings, seed=3)


@pytest.mark.parametrize(("most", "fewest"), [(1, 1), (2, 2), (None, 3)])
def test_a_step_reads_so_many_windows_of_each_text_and_validation_all(most, fewest):
    run = trainer(windows_per_text=most)
    run.prepare()
    run.model.train()
    rows = [i for i in range(len(TEXTS)) if i % 3 == 2 and run.train.folds[i] == run.train.folds[2]]
    seen = run.train.encode(run.model, rows)
    per_text = torch.bincount(seen.tokens.windows.rows)
    assert (per_text >= fewest).all()
    assert most is None or (per_text == most).all()
    run.model.eval()
    validated = run.validation.encode(run.model, rows)
    assert (torch.bincount(validated.tokens.windows.rows) >= 3).all()
    assert validated.tokens.is_read.equal(validated.tokens.mask)


def test_training_on_some_windows_runs_to_its_end():
    best = trainer(windows_per_text=1).run()
    assert best.accuracy > 0.9


def test_the_table_is_fitted_on_all_of_a_text_and_the_mean_states_on_the_windows_drawn():
    model = literal_model(max_length=WINDOW)
    whole, some = documents(model), documents(model, most_windows=1)
    assert (default_activations(model, whole) != default_activations(model, some)).nnz == 0
    counted = word_vectors(model, whole).counts
    drawn = word_vectors(model, some)
    assert counted.sum() == sum(map(len, whole.texts.ids))
    assert 0 < drawn.counts.sum() < counted.sum()
    torch.manual_seed(99)
    assert torch.equal(drawn.vectors, word_vectors(model, some).vectors)


def test_a_word_outside_of_what_was_read_is_never_masked(monkeypatch):
    model, seen = literal_model(max_length=WINDOW), []
    top_words = independence._top_words
    monkeypatch.setattr(independence, "_top_words", lambda *given: seen.append(given) or top_words(*given))
    ids, mask = batch_of(model, FILLER * 3, "a good film")
    windows = windows_of(model, ids, mask).sample(1)
    tokens = ReadTokens(ids, mask.bool(), model.encoder_states(ids, mask, windows=windows), windows)
    change_of_others(model, tokens)
    ((before, weights, _),) = seen
    is_read = tokens.is_read[before.rows, before.positions]
    assert 0 < is_read.sum() < len(is_read)
    assert (weights[~is_read] == 0).all()
    assert (weights[is_read] > 0).any()


def test_kept_states_are_those_of_windows(monkeypatch):
    kept, anew = (trainer(frozen_layers=1, windows_per_text=1) for _ in range(2))
    kept.run()
    monkeypatch.setattr(frozen_layers, "_store", lambda *_: None)
    anew.run()
    for name, weight in kept.model.state_dict().items():
        assert torch.allclose(weight, anew.model.state_dict()[name], atol=1e-4), name


def test_what_is_read_at_once_are_the_windows_of_long_texts():
    model = literal_model(max_length=WINDOW)
    texts = tokenize(model.tokenizer, [TEXTS[2], "a good film"], model.max_length)
    *windows, short = read_at_once(model, texts.ids)
    assert short == texts.ids[1]
    assert len(windows) > 3
    assert {len(ids) for ids in windows} == {WINDOW}
    assert all((ids[0], ids[-1]) == (texts.ids[0][0], texts.ids[0][-1]) for ids in windows)


def test_the_frozen_baseline_reads_the_same_windows(tmp_path):
    backbone = load_backbone(str(tiny.saved_encoder(tmp_path / "encoder"))).eval()
    whole = mean_states(backbone, TEXTS[:3], WINDOW, 32)
    cut = mean_states(backbone, TEXTS[:3], WINDOW)
    model = literal_model(max_length=WINDOW)
    model.backbone = backbone
    for row in range(3):
        ids, mask = batch_of(model, TEXTS[row])
        windows = Windows.of(mask, WINDOW, (1, 1))
        with torch.no_grad():
            expected = windows.states(backbone.encoder_states, ids)[0].mean(0)
        assert torch.allclose(whole[row], expected, atol=1e-5)
    assert not torch.allclose(whole, cut, atol=1e-3)


def test_a_batch_of_very_long_texts_has_fewer_of_them():
    texts = TokenizedTexts(tuple([1] * length for length in (10, 4 * LONG_TEXT, LONG_TEXT, 20, 30)), (0,) * 5, 0)
    assert list(length_buckets(texts, 4)) == [[1], [2, 4, 3, 0]]
    assert list(length_buckets(texts, 2)) == [[1], [2, 4], [3, 0]]
