"""Documents and tagged positions learned together, by one head or by two."""

import itertools

import numpy as np
import pytest
import torch

from lexical_sae.data import TaggedSplit
from lexical_sae.data.batches import tokenize
from lexical_sae.models.layers.neighbourhood import Neighbourhood
from lexical_sae.models.lexical_sae import CLASSIFY, TAG, LexicalSAE
from lexical_sae.recipes import recipe_by_name
from lexical_sae.training.callbacks import Callbacks
from lexical_sae.training.loop import Trainer
from lexical_sae.training.resuming.checkpoint import load_checkpoint, save_checkpoint
from lexical_sae.training.stopping import Interrupted
from lexical_sae.training.tasks import BothTasks, Documents, positions
from tests import tiny

NAMES = ("O", "B-LOC", "I-LOC", "B-ANIMAL", "I-ANIMAL")
TYPES = {"bank": "B-LOC", "river": "B-LOC", "church": "B-LOC", "dog": "B-ANIMAL", "dogs": "B-ANIMAL"}
FRAMES = ("the {} was good", "a very good {} and a film", "you play or the {}", "it is not the {} !", "i play a {}")
NOUNS = (*TYPES, "movie", "plot", "money", "city")


def sentences():
    """Each with a place, an animal or neither, which is also the label of the whole."""
    made = [tuple(frame.format(noun).split()) for frame, noun in itertools.product(FRAMES, NOUNS)]
    tags = tuple(tuple(TYPES.get(word, "O") for word in words) for words in made)
    return TaggedSplit(tuple(made), tags), [next((t for t in own if t != "O"), "O") for own in tags]


def both_tasks(model, rows=None, documents=None) -> BothTasks:
    split, labels = sentences()
    rows = range(len(split)) if rows is None else rows
    of = rows if documents is None else documents
    texts = tokenize(model.tokenizer, [" ".join(split.tokens[i]) for i in of], 16)
    tagged, _ = positions(model.tokenizer, split.take(rows), NAMES, 16)
    return BothTasks(Documents(texts, torch.tensor([NAMES.index(labels[i]) for i in of], dtype=torch.long)), tagged)


def new_model(*, shared, tags=NAMES) -> LexicalSAE:
    near = Neighbourhood.Config(words_per_token=4)
    parts = recipe_by_name("neighbours").model.model_copy(update={"shared_head": shared, "neighbourhood": near})
    torch.manual_seed(1)
    model = LexicalSAE(parts, tiny.backbone(), {CLASSIFY: NAMES, TAG: tags})
    model.start_from_backbone()
    return model


def new_trainer(*, shared, callbacks=None, **changes) -> Trainer:
    model = new_model(shared=shared)
    rows = np.random.default_rng(0).permutation(len(FRAMES) * len(NOUNS)).tolist()
    defaults = {"max_epochs": 6, "batch_size": 16, "learning_rate": 2e-3, "active_target": 16.0}
    settings = recipe_by_name("neighbours").training.model_copy(update={**defaults, **changes})
    train, held_out = both_tasks(model, 3 * rows[:33]), both_tasks(model, rows[33:])
    return Trainer(model, train, held_out, settings, seed=3, callbacks=callbacks)


@torch.no_grad()
def accuracies(model, task):
    """Of texts, and of words that name something."""
    found = {}
    for rows in _kinds(task):
        encoded = task.encode(model, rows)
        right = model.decide(encoded.sparse_vector, encoded.head).logits.argmax(-1) == encoded.labels
        named = encoded.labels != 0 if encoded.head == TAG else torch.ones_like(right)
        found[encoded.head] = float(right[named].float().mean())
    return found


@pytest.mark.parametrize("shared", [True, False], ids=["one head", "two heads"])
def test_one_training_teaches_both_tasks(shared):
    trainer = new_trainer(shared=shared)
    before = accuracies(trainer.model, trainer.validation)
    trainer.run()
    model = trainer.model
    assert (model.head(CLASSIFY) is model.head(TAG)) == shared
    after = accuracies(model, trainer.validation)
    # Most frequent class: 44 % of texts are O, 60 % of named words are LOC.
    assert after[CLASSIFY] > 0.75 > 0.6 > before[CLASSIFY]
    assert after[TAG] > 0.9 > 0.6 > before[TAG]


def test_a_step_on_documents_alone_moves_what_positions_are_decided_by_only_if_the_head_is_shared():
    for shared in (True, False):
        trainer = new_trainer(shared=shared, shared_word_vectors=False)
        trainer.prepare()
        tagger = trainer.model.head(TAG)
        before = tagger.class_weights.clone()
        trainer._take_step(trainer.train.alike(trainer._order(0)[0])[0])
        assert torch.equal(tagger.class_weights, before) != shared


def test_every_batch_holds_both_kinds_in_proportion_and_an_epoch_holds_every_row_once():
    model = new_model(shared=True)
    task = both_tasks(model, range(45), documents=range(8))
    batches = task.batches(16, np.random.default_rng(0), 0.0)
    assert sorted(row for rows in batches for row in rows) == list(range(53))
    for rows in batches:
        documents, tagged = task.alike(rows)
        assert max(documents) < 8 <= min(tagged)
        assert [task.encode(model, group).head for group in (documents, tagged)] == [CLASSIFY, TAG]
    assert [len(task.alike(rows)[0]) for rows in batches] == [2, 2, 2, 2]


def test_both_tasks_count_the_same_however_many_samples_each_has():
    task = both_tasks(new_model(shared=True), range(45), documents=range(17))
    documents, tagged = _kinds(task)
    assert task.samples(documents) == pytest.approx(task.samples(tagged))
    assert task.samples(documents[:1]) == pytest.approx(task.samples(documents) / 17)
    assert min(task.samples(documents) / 17, task.positions.samples(range(45))) >= 1


def test_the_step_reports_the_mean_of_both_cross_entropies():
    trainer = new_trainer(shared=True, gradient_accumulation_steps=4)
    trainer.prepare()
    trainer.model.eval()
    rows = list(range(len(trainer.train.texts)))
    with torch.no_grad():
        ours, theirs = (float(trainer.steps.read(group).loss) for group in trainer.train.alike(rows))
    pieces = trainer.steps.backward(rows, trainer.train.samples(rows))
    assert [piece.share for piece in pieces] == pytest.approx([0.5, 0.5])
    assert sum(piece.share * piece.ce for piece in pieces) == pytest.approx((ours + theirs) / 2, rel=1e-4)


def test_a_run_that_was_stopped_goes_on_bitwise(tmp_path):
    whole = new_trainer(shared=True, max_epochs=2)
    whole.run()
    saved = tmp_path / "checkpoint"
    records = []
    stopped = Callbacks(
        on_record=records.append,
        on_checkpoint=lambda state: save_checkpoint(saved, state),
        is_interrupted=lambda: len(records) == 3,
    )
    with pytest.raises(Interrupted):
        new_trainer(shared=True, max_epochs=2, callbacks=stopped).run()
    resumed = new_trainer(shared=True, max_epochs=2)
    resumed.load_state_dict(load_checkpoint(saved).state)
    resumed.run()
    assert resumed.model.head(CLASSIFY) is resumed.model.head(TAG)
    ours, theirs = resumed.model.state_dict(), whole.model.state_dict()
    assert [name for name in theirs if not torch.equal(ours[name], theirs[name])] == []


def test_training_starts_with_no_more_words_than_wanted_in_texts_or_at_positions():
    trainer = new_trainer(shared=True, calibrated_start=0.25)
    trainer.prepare()
    task, model = trainer.train, trainer.model
    active = [float((task.encode(model, rows).sparse_vector > 0).sum(-1).float().mean()) for rows in _kinds(task)]
    assert max(active) == pytest.approx(4, rel=0.3)
    assert min(active) > 0


def _kinds(task):
    return task.alike(range(len(task.texts)))


def test_a_learning_rate_is_found_on_both_tasks():
    seen = []
    trainer = new_trainer(shared=True, learning_rate=None, callbacks=Callbacks(on_record=seen.append))
    encode, heads = BothTasks.encode, set()

    def noted(*given, **options):
        found = encode(*given, **options)
        heads.add(found.head)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BothTasks, "encode", noted)
        trainer._preparation().found_rate()
    assert heads == {CLASSIFY, TAG}
    assert seen[-1]["lr"] > 0


def test_heads_with_different_labels_are_not_trained_together():
    model = new_model(shared=False, tags=(*NAMES, "B-PER"))
    task = both_tasks(model)
    with pytest.raises(ValueError, match="'classify' and 'tag' are trained together, but have different labels"):
        Trainer(model, task, task, recipe_by_name("neighbours").training)


def test_one_task_without_samples_is_refused():
    with pytest.raises(ValueError, match="got 0 documents and"):
        both_tasks(new_model(shared=True), documents=())
