"""Frozen lower layers: what they compute is kept, and changes no answer."""

import contextlib
import copy

import pytest
import torch

from lexical_sae.data.batches import tokenize
from lexical_sae.models.kept_states import CutEncoder, KeptStates, tokens_to_keep
from lexical_sae.recipes import recipe_by_name
from lexical_sae.training import frozen_layers, loop
from lexical_sae.training.loop import Trainer
from lexical_sae.training.tasks import Documents
from lexical_sae.utils.errors import SettingsError
from tests import tiny
from tests.literal import literal_model
from tests.tiny import BAD, GOOD

CUTTABLE = [family for family in tiny.FAMILIES if family != "albert"]


def texts_of(ids, mask):
    return [row[real].tolist() for row, real in zip(ids, mask, strict=True)]


def kept(backbone, ids, mask):
    texts = texts_of(ids, mask)
    store = torch.full((tokens_to_keep(texts), backbone.encoder_width), torch.nan, dtype=torch.float64)
    return KeptStates(CutEncoder(backbone.encoder, 1), texts, store)


@pytest.mark.parametrize("family", CUTTABLE)
@pytest.mark.parametrize("length", [9, 12])
def test_an_encoder_in_two_steps_is_the_encoder(family, length):
    backbone = tiny.backbone(family).double()
    ids, mask = tiny.batch()
    whole = backbone.encoder_states(ids, mask)
    backbone.kept_states = kept(backbone, ids, mask)
    for _ in range(2):
        # The second time they are looked up, in batches of another width.
        padded = [torch.nn.functional.pad(part, (0, length - 9)) for part in (ids, mask)]
        found = backbone.encoder_states(*padded)[:, :9]
        torch.testing.assert_close(found[mask], whole[mask], rtol=1e-10, atol=1e-10)


def test_a_text_goes_through_the_lower_layers_once_and_a_changed_one_again():
    backbone = tiny.backbone().double()
    ids, mask = tiny.batch()
    backbone.kept_states = kept(backbone, ids, mask)
    read = []
    lowest = backbone.encoder.encoder.layer[0]
    lowest.register_forward_pre_hook(lambda _, args: read.append(len(args[0])))
    backbone.encoder_states(ids, mask)
    backbone.encoder_states(ids[:2], mask[:2])
    changed = ids.clone()
    changed[1, 1] = 5
    backbone.encoder_states(changed, mask)
    backbone.encoder_states(changed, mask)
    assert read == [len(ids), 1, 1]


def test_an_encoder_without_a_stack_and_a_depth_without_a_layer_left_are_refused():
    with pytest.raises(SettingsError, match="no stack"):
        CutEncoder(tiny.backbone("albert").encoder, 1)
    with pytest.raises(SettingsError, match="at least one learns"):
        CutEncoder(tiny.backbone().encoder, 2)


def trained(monkeypatch, *, keeps, **changes):
    """The weights after a few steps in double precision, those before, and how many rows went through layer 0.

    Words read alone, which are a prior for the table, are not counted.
    """
    model = literal_model(shifting=False).double()
    before = copy.deepcopy(model.backbone.state_dict())
    read = []
    model.backbone.encoder.encoder.layer[0].register_forward_pre_hook(lambda _, args: read.append(len(args[0])))
    update = {"max_epochs": 2, "batch_size": 4, "learning_rate": 1e-3, "frozen_layers": 1, **changes}
    settings = recipe_by_name("anchored").training.model_copy(update=update)
    labels = torch.tensor([2] * len(GOOD) + [0] * len(BAD))
    documents = Documents(tokenize(model.tokenizer, GOOD + BAD, 16), labels)
    if not keeps:
        monkeypatch.setattr(loop, "kept_lower_states", lambda *_: contextlib.nullcontext())
    run = Trainer(model, documents, documents, settings, seed=3)
    with run.processes.sharing(model.backbone.encoder), loop.kept_lower_states(model, 1, run.train.texts.ids):
        run.prepare()
        for _ in range(2):
            run._finish_epoch()
    return model.state_dict(), before, sum(read) - int(model.dimensions.vocabulary.word_mask.sum())


def test_training_with_kept_states_is_training_without(monkeypatch):
    with monkeypatch.context() as patched:
        anew, _, read_anew = trained(patched, keeps=False)
    kept, _, read_once = trained(monkeypatch, keeps=True)
    for name, part in kept.items():
        torch.testing.assert_close(
            part, anew[name], rtol=1e-9, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}"
        )
    # Eight texts once, and one masked text in each of ten steps.
    assert (read_once, read_anew) == (8 + 10, 8 + 16 + 10)


def test_below_the_cut_nothing_moves_and_above_it_everything_does(monkeypatch):
    after, before, _ = trained(monkeypatch, keeps=True)
    for name, part in before.items():
        is_upper = ".layer.1." in name
        moved = not torch.equal(after[f"backbone.{name}"], part)
        assert moved == is_upper or (is_upper and name.endswith("key.bias")) or "shell" in name, name


def test_states_that_fit_nowhere_are_computed_anew(monkeypatch):
    monkeypatch.setattr(frozen_layers, "MEMORY_SHARE", 0.0)
    in_file, _, _ = trained(monkeypatch, keeps=True)
    monkeypatch.setattr(frozen_layers, "DISK_SHARE", 0.0)
    nowhere, _, read = trained(monkeypatch, keeps=True)
    assert read == 8 + 16 + 10
    for name, part in in_file.items():
        torch.testing.assert_close(part, nowhere[name], rtol=1e-9, atol=1e-9)
