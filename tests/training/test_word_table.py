import copy
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from lexical_sae.data.batches import tokenize
from lexical_sae.models.assembly import add_heads
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.models.word_views import without_context
from lexical_sae.recipes import recipe_by_name
from lexical_sae.runs.seeds import Watchers, fit
from lexical_sae.training import word_table
from lexical_sae.training.certain_rows import certain_rows
from lexical_sae.training.folds import FOLDS, FoldedDocuments
from lexical_sae.training.loop import Trainer
from lexical_sae.training.table_choice import EVEN as EVEN_CHOICES
from lexical_sae.training.table_choice import FEW_TEXTS, Choice, Penalties, candidates, chosen_penalties, judged_folds
from lexical_sae.training.table_choice import LENIENT as LENIENT_CHOICES
from lexical_sae.training.tasks import Documents
from lexical_sae.training.word_table import TableFitter, WordVectors, default_activations, fit_word_table, word_vectors
from tests import tiny
from tests.literal import SPLIT, batch_of, literal_model, opened
from tests.tiny import BAD, GOOD

TEXTS, LABELS = (GOOD + BAD) * 4, ([0] * 4 + [2] * 4) * 4
LENIENT, EVEN = Penalties(1e-2, 3e-2), Penalties(0.3, 0.9, is_even=True)


def documents(model, texts=TEXTS, labels=LABELS):
    return Documents(tokenize(model.tokenizer, texts, 16), torch.tensor(labels, dtype=torch.long))


def fitted(texts=TEXTS, labels=LABELS, model=None, seed=0):
    """A model with its table, those of its folds, and the documents that it was fitted on."""
    model = model or literal_model()
    folded = FoldedDocuments.of(documents(model, texts, labels), seed)
    add_heads(model, folded.heads, like="classify")
    fit_word_table(model, folded, folded.folds, folded.heads)
    return model, folded


def problem(texts=30, words=12, width=4, classes=3, seed=0):
    """Counts of words in texts, labels, and a vector per word; the last two words are in no text."""
    generator = np.random.default_rng(seed)
    counts = generator.poisson(0.4, (texts, words)).astype(float)
    counts[:, -2:] = 0
    vectors = torch.from_numpy(generator.normal(size=(words, width)))
    labels = torch.from_numpy(generator.integers(0, classes, texts))
    known = WordVectors(vectors, torch.zeros(3, width, dtype=torch.float64), torch.from_numpy(counts.sum(0)).long())
    return TableFitter(csr_matrix(counts), labels, classes, known), torch.from_numpy(counts), labels, vectors


def penalised(own, P, bias, counts, labels, vectors, rarity, penalties):
    """The loss as the page says it: rows are own weights, scaled by rarity, plus a projection of the vectors."""
    rows = own * rarity[:, None] + vectors @ P
    loss = torch.nn.functional.cross_entropy(counts @ rows + bias, labels)
    spread = (counts @ vectors).std(0, correction=0)[:, None] if penalties.is_even else 1.0
    held = penalties.own * own.square().sum() + penalties.shared * (spread * P).square().sum()
    return loss + held / (len(counts) if penalties.is_even else 1)


def slow_fit(counts, labels, vectors, rarity, penalties=LENIENT, classes=3):
    """By Newton-like steps of torch's own optimiser, on all words at once."""
    met = (counts > 0).any(0)
    shapes = ((counts.shape[1], classes), (vectors.shape[1], classes), (classes,))
    own, P, bias = (torch.zeros(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    limits = {"max_iter": 2000, "tolerance_grad": 1e-12, "tolerance_change": 1e-16, "line_search_fn": "strong_wolfe"}
    optimizer = torch.optim.LBFGS([own, P, bias], **limits)

    def closure():
        optimizer.zero_grad()
        loss = penalised(own * met[:, None], P, bias, counts, labels, vectors, rarity, penalties)
        loss.backward()
        return loss

    optimizer.step(closure)
    assert max(part.grad.abs().max() for part in (own, P, bias)) < 1e-8
    rows = own * met[:, None] * rarity[:, None] + vectors @ P
    return (rows - rows.mean(-1, keepdim=True)).detach(), (bias - bias.mean()).detach()


def rarity_of(fitter, words=12):
    rarity = torch.ones(words, dtype=torch.float64)
    rarity[fitter.met] = torch.from_numpy(fitter.rarity)
    return rarity


@pytest.mark.parametrize("penalties", [LENIENT, EVEN])
def test_the_fit_is_the_one_of_a_slow_reference(penalties):
    fitter, counts, labels, vectors = problem()
    rows, bias = slow_fit(counts, labels, vectors, rarity_of(fitter), penalties)
    table = fitter.fit(penalties)
    torch.testing.assert_close(table.rows, rows, atol=1e-3, rtol=0)
    torch.testing.assert_close(table.bias, bias, atol=1e-3, rtol=0)
    assert rows.abs().max() > 0.3


def test_some_texts_give_the_table_of_those_texts_alone():
    fitter, counts, labels, vectors = problem()
    chosen = torch.arange(30) % 3 != 0
    # Which words are met and how rare they are is a matter of all texts.
    rows, bias = slow_fit(counts[chosen], labels[chosen], vectors, rarity_of(fitter))
    table = fitter.fit(LENIENT, chosen)
    torch.testing.assert_close(table.rows, rows, atol=1e-3, rtol=0)
    torch.testing.assert_close(table.bias, bias, atol=1e-3, rtol=0)
    other = labels.clone()
    other[~chosen] = (labels[~chosen] + 1) % 3
    changed = TableFitter(csr_matrix(counts.numpy()), other, 3, WordVectors(vectors, vectors[:3], counts.sum(0).long()))
    assert torch.equal(changed.fit(LENIENT, chosen).rows, table.rows)
    assert not torch.equal(changed.fit(LENIENT).rows, fitter.fit(LENIENT).rows)


def test_rare_words_have_weights_that_cost_less_and_words_never_met_only_what_their_vector_says():
    fitter, _, _, vectors = problem()
    table = fitter.fit(LENIENT)
    expected = vectors[-2:] @ table.projection
    torch.testing.assert_close(table.rows[-2:], expected - expected.mean(-1, keepdim=True))
    frequency = (fitter.activations[:, fitter.met] > 0).sum(0).A1
    assert (fitter.rarity[frequency.argmin()], fitter.rarity[frequency.argmax()]) == (
        fitter.rarity.max(),
        fitter.rarity.min(),
    )


def test_default_activations_are_those_of_the_model_without_context():
    model = literal_model()
    texts = [*TEXTS[:3], "a badly filmed film, good good film"]
    found = default_activations(model, documents(model, texts, [0] * 4)).toarray()
    without = literal_model(context=None)
    expected = without.encode_document(*batch_of(without, *texts)).sparse_vector
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)


def test_vectors_of_words_do_not_hang_on_labels_and_rows_do():
    vectors, rows = [], []
    for labels in (LABELS, LABELS[::-1]):
        model, folded = fitted(labels=labels)
        vectors.append(word_vectors(literal_model(), folded))
        rows.append(model.head().word_vectors)
    assert torch.equal(vectors[0].vectors, vectors[1].vectors)
    assert torch.equal(vectors[0].from_embedding, vectors[1].from_embedding)
    (good,) = tiny.wordpiece().convert_tokens_to_ids(["good"])
    assert rows[0][good].argmax() == 0
    assert rows[1][good].argmax() == 2


def test_the_vector_of_a_frequent_word_is_its_mean_state_and_of_one_never_met_what_its_embedding_says(monkeypatch):
    monkeypatch.setattr(word_table, "SHRINK", 1e-9)
    model = literal_model()
    task = documents(model)
    found = word_vectors(model, task)
    good, plot, church = tiny.wordpiece().convert_tokens_to_ids(["good", "plot", "church"])
    assert found.counts[[good, church]].tolist() == [12, 0]
    ids, mask = batch_of(model, *TEXTS)
    with torch.no_grad():
        states = model.encoder_states(ids, mask)
    # They are centred and scaled in the same way: differences keep their direction.
    between = states[ids == good].mean(0) - states[ids == plot].mean(0)
    cosine = torch.cosine_similarity(between.double(), found.vectors[good] - found.vectors[plot], dim=0)
    assert cosine > 0.9999
    embedding = model.backbone.input_embeddings()[church].double()
    expected = embedding @ found.from_embedding[:-1] + found.from_embedding[-1]
    torch.testing.assert_close(found.vectors[church], expected)


def test_rare_words_are_shrunk_towards_what_their_embedding_says():
    embeddings = torch.randn(40, 3, dtype=torch.float64)
    means = torch.randn(40, 2, dtype=torch.float64)
    means[1] = means[0]
    embeddings[1] = embeddings[0]
    counts = torch.full((40,), 50)
    counts[0], counts[1] = 1, 10_000
    found = word_table._shrunk(means * counts[:, None], counts, embeddings, torch.zeros(4, 2, dtype=torch.float64))
    predicted = embeddings[:2] @ found.from_embedding[:-1] + found.from_embedding[-1]
    far, near = (found.vectors[:2] - predicted).norm(dim=-1)[[1, 0]]
    # Once against SHRINK = 3 times, and ten thousand times.
    assert (near / far).item() == pytest.approx(0.25, rel=1e-2)


def test_a_fitted_table_knows_its_words_and_empties_small_rows():
    model, _ = fitted(model=literal_model(shifting=False, head={"kind": "table", "least_row": 0.3}))
    head = model.head()
    size = head.word_vectors.abs().amax(-1)
    assert ((size == 0) | (size >= head.config.least_row)).all()
    assert (size == 0).any()
    assert model.gate.closed[size == 0].all()
    words = model.dimensions.vocabulary.word_mask & (size[: model.dimensions.vocabulary.size] > 0)
    assert not model.gate.closed[: len(words)][words].any()
    assert torch.equal(model.context.size, size)
    good, bad = tiny.wordpiece().convert_tokens_to_ids(["good", "bad"])
    assert head.word_vectors[good].argmax() == 0
    assert head.word_vectors[bad].argmax() == 2
    with torch.no_grad():
        logits = model.classify_document(*batch_of(model, *GOOD, *BAD)).logits
    assert logits.argmax(-1).tolist() == LABELS[:8]


def test_the_row_of_an_unseen_word_follows_from_its_spelling():
    model, folded = fitted()
    view = opened(model, "churchly badly")
    vectors = word_vectors(literal_model(), folded)
    pieces = tiny.wordpiece()("churchly", add_special_tokens=False)["input_ids"]
    vector = model.backbone.input_embeddings()[pieces].mean(0).double() @ vectors.from_embedding[:-1]
    vector = vector + vectors.from_embedding[-1]
    (place,) = view.dimensions.find("churchly")
    row = view.head().word_vectors[place]
    # A word that was never met but has a dimension gets its row in the same way.
    (badly,) = model.dimensions.find(SPLIT[0])
    own = vectors.vectors[badly]
    assert vectors.counts[badly] == 0
    solved = torch.linalg.lstsq(
        torch.stack([own, vector]), torch.stack([view.head().word_vectors[badly], row]).double()
    )
    assert row.abs().max() > 0
    torch.testing.assert_close(vector @ solved.solution, row.double(), atol=1e-4, rtol=1e-4)


def test_the_table_of_a_fold_is_fitted_without_it(monkeypatch):
    # Penalties and temperature, three numbers, are those of all texts.
    monkeypatch.setattr(word_table, "chosen_penalties", lambda *_: Choice(LENIENT, 0.5, 1.0, 32))
    model, folded = fitted()
    other = literal_model()
    add_heads(other, folded.heads, like="classify")
    changed = replace(folded, labels=torch.where(folded.folds == 2, 1, folded.labels))
    fit_word_table(other, changed, changed.folds, changed.heads)
    for k, name in enumerate(folded.heads):
        is_same = torch.equal(model.head(name).word_vectors, other.head(name).word_vectors)
        assert is_same == (k == 2), name
    assert len(folded.heads) == FOLDS


# How strongly it is held back


def test_strong_penalties_are_offered_to_few_texts_where_the_table_stays_alone():
    assert candidates(FEW_TEXTS - 1, with_context=False) == EVEN_CHOICES + LENIENT_CHOICES
    assert candidates(FEW_TEXTS, with_context=False) == LENIENT_CHOICES
    assert candidates(10, with_context=True) == LENIENT_CHOICES


def test_all_folds_of_few_texts_are_judged_and_one_of_many():
    assert [len(rows) for rows in judged_folds(torch.arange(40) % FOLDS)] == [8] * FOLDS
    assert [len(rows) for rows in judged_folds(torch.arange(6000) % FOLDS)] == [1200]
    # Of two texts only two folds have one.
    assert torch.cat(judged_folds(torch.tensor([3, 1]))).tolist() == [1, 0]


def test_the_choice_orders_left_out_labels_best_however_unsure_it_is():
    labels, folds = torch.arange(100) % 2, torch.arange(100) % FOLDS
    truth = torch.nn.functional.one_hot(labels, 2).double()
    noise = torch.from_numpy(np.random.default_rng(0).normal(size=(100, 2)))
    logits = {EVEN: 0.2 * (truth + 0.1 * noise), LENIENT: 3 * (truth + noise)}
    told = []
    found = chosen_penalties(
        list(logits), lambda penalties, rows: logits[penalties][rows], labels, folds, None, lambda: told.append(1)
    )
    assert found.penalties == EVEN
    assert (found.accuracy, found.texts, len(told)) == (1.0, 100, 10)


# The whole recipe


def trainer(model=None, **changes):
    model = model or literal_model(shifting=False)
    update = {"max_epochs": 2, "batch_size": 8, "learning_rate": 1e-3, **changes}
    settings = recipe_by_name("anchored").training.model_copy(update=update)
    return Trainer(model, documents(model), documents(model, GOOD + BAD, LABELS[:8]), settings, seed=3)


def test_context_learns_and_the_table_stays_bitwise():
    run = trainer()
    run.prepare()
    heads = {name: copy.deepcopy(run.model.head(name).state_dict()) for name in ("classify", *run.train.heads)}
    weight = run.model.context.layer.weight.detach().clone()
    encoder = copy.deepcopy(run.model.backbone.encoder.state_dict())
    for _ in range(2):
        run._finish_epoch()
    for name, before in heads.items():
        after = run.model.head(name).state_dict()
        assert all(torch.equal(before[part], after[part]) for part in before), name
    assert not torch.equal(run.model.context.layer.weight, weight)
    now = run.model.backbone.encoder.state_dict()
    assert any(not torch.equal(encoder[name], now[name]) for name in encoder)


def test_the_table_of_a_trained_model_is_the_fitted_one():
    run = trainer()
    run.run()
    table, _ = fitted(model=literal_model(shifting=False), seed=3)
    assert torch.equal(run.model.gate.closed, table.gate.closed)
    for name, part in table.head().state_dict().items():
        assert torch.equal(run.model.head().state_dict()[name], part), name


def test_without_context_training_is_the_fit_of_the_table_and_takes_no_step():
    run = trainer(literal_model(shifting=False, context=None))
    encoder = copy.deepcopy(run.model.backbone.encoder.state_dict())
    best = run.run()
    assert (run.step, best.epoch) == (0, 0)
    table = literal_model(shifting=False, context=None)
    folded = FoldedDocuments.of(documents(table), 3)
    fit_word_table(table, folded, folded.folds, ())
    for name, part in table.head().state_dict().items():
        assert torch.equal(run.model.head().state_dict()[name], part), name
    assert list(run.model.heads) == ["classify", "tag"]
    now = run.model.backbone.encoder.state_dict()
    assert all(torch.equal(encoder[name], now[name]) for name in encoder)


def test_the_heads_of_folds_are_gone_after_training_and_from_the_saved_model(tmp_path):
    run = trainer()
    assert [name for name in run.model.heads if "without" in name] == list(run.train.heads)
    run.run()
    assert list(run.model.heads) == list(run.model.labels) == ["classify", "tag"]
    save_pretrained(run.model, tmp_path / "model")
    back = from_pretrained(tmp_path / "model")
    assert list(back.heads) == ["classify", "tag"]
    ids, mask = batch_of(back, *GOOD, *BAD, "a badly good church")
    with torch.no_grad():
        assert torch.equal(back.classify_document(ids, mask).logits, run.model.classify_document(ids, mask).logits)


def test_each_text_is_learned_on_the_table_that_never_saw_it(monkeypatch):
    run = trainer()
    asked = []
    plain = run.model.decide
    monkeypatch.setattr(
        run.model, "decide", lambda vector, head, words=None: asked.append(head) or plain(vector, head, words)
    )
    run.prepare()
    taken = run._order(0)
    for rows in taken:
        run._take_step(rows)
    assert asked == [run.train.heads[int(run.train.folds[rows[0]])] for rows in taken]


def negations(count, seed):
    """Texts of drawn words with an opinion, and "not" before a third of those."""
    chance = random.Random(seed)
    texts, labels = [], []
    for i in range(count):
        opinion, label = chance.choice([("good", 2), ("great", 2), ("bad", 0), ("boring", 0)])
        filler = chance.choices(["film", "movie", "plot", "acting", "the", "a", "dog", "city"], k=chance.randint(2, 5))
        at = chance.randrange(len(filler))
        texts.append(" ".join([*filler[:at], *(["not"] if i % 3 == 0 else []), opinion, *filler[at:]]))
        labels.append(2 - label if i % 3 == 0 else label)
    return texts, labels


def test_context_learns_what_no_table_can_say():
    """A third of the opinions are negated: a table is wrong about those."""
    model = literal_model(shifting=False)
    train, validation = (documents(model, *negations(count, seed)) for count, seed in ((400, 0), (100, 1)))
    update = {"max_epochs": 12, "batch_size": 16, "learning_rate": 2e-3, "active_target": 3.0}
    settings = recipe_by_name("anchored").training.model_copy(update=update)
    best = Trainer(model, train, validation, settings, seed=0).run()
    ids, mask = batch_of(model, *negations(100, 1)[0])
    with torch.no_grad():
        whole, table = (
            (one.classify_document(ids, mask).logits.argmax(-1) == validation.labels).float()
            for one in (model, without_context(model))
        )
    assert best.accuracy > table.mean().item() + 0.15, (best.accuracy, table.mean())
    # What validation says of the gain, from the same decisions one text at a time.
    gains = (whole - table).double()
    assert best.gain == pytest.approx(gains.mean().item())
    # As if one more text had been won and one lost.
    assert best.gain_error == pytest.approx(((gains.var(correction=0).item() + 2 / 100) / 100) ** 0.5)


def test_where_context_is_not_better_the_table_alone_is_the_model_and_asks_no_encoder():
    """The table is right on all validation texts, so there is nothing to gain."""
    model = literal_model(shifting=False)
    settings = recipe_by_name("anchored").training.model_copy(
        update={"max_epochs": 2, "batch_size": 8, "learning_rate": 1e-3}
    )
    told = []
    fit(
        model,
        documents(model),
        documents(model, GOOD + BAD, LABELS[:8]),
        settings,
        3,
        None,
        Watchers(on_note=told.append),
    )
    assert model.context is None
    assert model.config.context is None
    assert len(told) == 1
    assert "the table of words alone is the model" in told[0]
    table, _ = fitted(model=literal_model(shifting=False), seed=3)
    for name, part in table.head().state_dict().items():
        assert torch.equal(model.head().state_dict()[name], part), name
    model.backbone.encoder_states = None
    with torch.no_grad():
        assert model.classify_document(*batch_of(model, *GOOD)).logits.isfinite().all()


def test_document_frequencies_count_texts_not_occurrences_and_split_words_whole():
    model = literal_model()
    texts = tokenize(model.tokenizer, ["good good film!", "a badly filmed film", "Good", ""], 32)
    counts = word_table.document_frequencies(model, texts)
    assert {word: counts[word] for word in ("good", "film", "badly", "filmed", "a")} == {
        "good": 2,
        "film": 2,
        "badly": 1,
        "filmed": 1,
        "a": 1,
    }
    assert "bad" not in counts
    assert not [word for word in counts if word.startswith("[")]


# Rows that could as well be zero


def test_a_row_is_certain_if_it_stays_where_it_is_without_a_fold():
    rows = torch.tensor([[0.5, -0.5], [0.5, -0.5], [0.0, 0.9]])
    left_out = [
        rows + torch.tensor([[-0.1, 0.1], [-0.4, 0.4], [0.0, 0.0]]),
        rows - torch.tensor([[-0.1, 0.1], [-0.4, 0.4], [0.0, 0.0]]),
    ]
    # Standard errors of 0.1, 0.4 and 0.
    assert certain_rows(rows, left_out, 2.0).tolist() == [True, False, True]
    assert certain_rows(rows, left_out, 1.2).all()
    assert not certain_rows(rows[:1], [part[:1] for part in left_out], 5.1).any()


def test_words_that_say_nothing_have_fewer_rows_and_words_that_decide_keep_theirs():
    chance = random.Random(0)
    plain = ["the", "film", "movie", "plot", "acting", "dog", "city", "river", "money", "bank"]
    opinions = [chance.choice(["good", "great"] if i % 2 else ["bad"]) for i in range(60)]
    texts = [" ".join([*chance.sample(plain, 6), opinion]) for opinion in opinions]
    labels = [2 * (i % 2) for i in range(60)]
    usual, _ = fitted(texts, labels)
    model = literal_model()
    model.head().config = model.head().config.model_copy(update={"least_certainty": 2.0})
    certain, _ = fitted(texts, labels, model=model)

    def with_weight(of):
        active = ~of.gate.closed & (of.head().word_vectors.abs().amax(-1) > 0)
        return set(of.dimensions.names(active.nonzero().flatten().tolist()))

    assert {"good", "bad"} <= with_weight(certain)
    assert len(with_weight(certain) & set(plain)) < len(with_weight(usual) & set(plain))
    # Rows that are left are those of the table, and the folds' tables are untouched but for closed words.
    kept = certain.head().word_vectors.abs().amax(-1) > 0
    assert torch.equal(certain.head().word_vectors[kept], usual.head().word_vectors[kept])
