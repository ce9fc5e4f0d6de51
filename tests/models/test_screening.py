import contextlib
import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers import int8_product, screening
from lexical_sae.models.layers.activation import DReLU, GatedJumpReLU, JumpReLUGate
from lexical_sae.models.layers.int8_product import IntMM, OneDNN, speedup
from lexical_sae.models.layers.screening import QuantisedDecoder, Screen, screened
from lexical_sae.models.layers.vocab_head import reference_max_logits
from tests import tiny
from tests.models.test_vocab_head import problems

CPU = torch.device("cpu")


class Plain:
    """An integer product that works everywhere."""

    name, levels, widest = "plain", 63, 10**6

    def pack(self, weight):
        return weight.long()

    def __call__(self, states, packed):
        return (states.long() @ packed.T).int()


PRODUCTS = [product for product in (Plain(), IntMM(), OneDNN()) if int8_product._is_right(product, CPU)]
GATES = [
    DReLU.Config(initial_threshold=-0.5, offset=True),
    DReLU.Config(initial_threshold=1.0),
    GatedJumpReLU.Config(initial_threshold=0.7, offset=True),
    JumpReLUGate.Config(initial_threshold=1.0),
]


@contextlib.contextmanager
def constants(module=screening, **values):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(module, name, value)
        yield


@contextlib.contextmanager
def always_screening(product=None):
    """Screening whatever the size, the speed and the number of candidates."""
    chosen = product or Plain()
    with constants(
        SMALLEST_PROBLEM=1, MOST_CANDIDATES=1.0, TOKENS_TO_GATHER_ALL=1e-9, fastest_product=lambda *_: chosen
    ):
        yield


def never_screening():
    """As on a machine where no integer product pays."""
    return constants(fastest_product=lambda *_: None)


@st.composite
def gates(draw, size: int):
    """A gate of any kind: thresholds of either sign where it has them, offsets, some words closed."""
    gate = draw(st.sampled_from(GATES)).build(size).eval()
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    with torch.no_grad():
        for parameter in gate.parameters():
            parameter.add_(torch.randn(size, generator=generator))
    gate.close(torch.rand(size, generator=generator) < draw(st.sampled_from([0.0, 0.3, 1.0])))
    return gate


@given(st.data(), problems(dtype=torch.float32), st.sampled_from(PRODUCTS), st.sampled_from([3, 10_000]))
def test_screening_finds_the_active_words_of_the_reference(data, problem, product, chunk):
    hidden, weight, bias, mask = problem
    gate = data.draw(gates(len(weight)))
    with torch.no_grad(), always_screening(product), constants(VOCABULARY_CHUNK=chunk, TOKEN_TILE=chunk):
        dense = gate(reference_max_logits(hidden, weight, bias, mask)).activated
        found = Screen().candidates(hidden, weight, bias, mask, gate.opening_logits())
        if found is None:
            assert not mask.any()
            return
        activations = gate(found.logits, found.words).activated
    screened_code = torch.zeros_like(dense)
    screened_code[found.documents, found.words] = activations
    # At most the rounding of a sum in another order; the strengths here are of size ten.
    torch.testing.assert_close(screened_code, dense, atol=1e-6, rtol=1e-6)
    settled = (dense == 0) | (dense > 1e-5)
    assert torch.equal((screened_code != 0)[settled], (dense != 0)[settled])
    order = found.documents * len(weight) + found.words
    assert torch.equal(order, order.sort().values)
    assert len(order.unique()) == len(order)
    assert mask[found.documents, found.positions].all()
    at = (hidden[found.documents, found.positions] * weight[found.words]).sum(-1) + bias[found.words]
    torch.testing.assert_close(found.logits, at, atol=1e-5, rtol=1e-5)


def problem_with_close_calls(seed: int = 0):
    """Openings just below each word's greatest logit: a bound that is too tight by little loses words."""
    generator = torch.Generator().manual_seed(seed)
    hidden, weight = (torch.randn(n, generator=generator).view(-1, 24) for n in (8 * 6 * 24, 500 * 24))
    hidden, bias = hidden.view(8, 6, 24), torch.randn(500, generator=generator)
    mask = torch.arange(6)[None] < torch.arange(8)[:, None].clamp(1, 6)
    greatest = reference_max_logits(hidden, weight, bias, mask)
    return hidden, weight, bias, mask, greatest.amax(0) - 1e-4, greatest


def lost_pairs(decoder, problem) -> int:
    hidden, weight, bias, mask, opening, greatest = problem
    found = screened(hidden, weight, bias, mask, opening, decoder)
    is_found = torch.zeros_like(greatest, dtype=torch.bool)
    is_found[found.documents, found.words] = True
    return int(((greatest > opening) & ~is_found).sum())


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_no_pair_above_its_opening_is_lost_however_close_the_call(product):
    problem = problem_with_close_calls()
    with always_screening():
        assert lost_pairs(QuantisedDecoder(problem[1], problem[4], product), problem) == 0


@pytest.mark.parametrize("term", ["norms", "error_norms"])
def test_a_bound_without_either_error_term_would_be_caught(term):
    problem = problem_with_close_calls()
    if term == "error_norms":
        # States that are whole multiples of their scale have no error, so that the words' errors alone remain.
        hidden = (problem[0] * 20).round().clamp(-62, 62)
        hidden[:, :, 0] = 63.0
        greatest = reference_max_logits(hidden, *problem[1:4])
        problem = (hidden, *problem[1:4], greatest.amax(0) - 1e-3, greatest)
    decoder = QuantisedDecoder(problem[1], problem[4], Plain())
    with always_screening():
        assert lost_pairs(decoder, problem) == 0
        setattr(decoder, term, torch.zeros_like(getattr(decoder, term)))
        assert lost_pairs(decoder, problem) > 0


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_one_token_that_rounds_badly_among_exact_ones_loses_no_word(product):
    """The bound takes the document's greatest error: a mean, which five exact tokens pull down, loses eight words."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(400, 24, generator=generator)
    weight[:, 0] = 0
    hidden = torch.zeros(8, 6, 24)
    hidden[:, 3] = 0.49 * weight[:8].sign()
    hidden[:, :, 0] = 63.0
    bias, mask = torch.zeros(400), torch.ones(8, 6, dtype=torch.bool)
    greatest = reference_max_logits(hidden, weight, bias, mask)
    opening = torch.full((400,), 1e9)
    opening[:8] = greatest.diagonal() - 1e-3
    with always_screening():
        decoder = QuantisedDecoder(weight, opening, product)
        assert lost_pairs(decoder, (hidden, weight, bias, mask, opening, greatest)) == 0


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
@pytest.mark.parametrize("shape", [(1, 8, 3), (33, 60, 17), (20, 384, 64)], ids=str)
def test_integer_products_are_exact_at_their_extremes(product, shape):
    rows, width, size = shape
    states = torch.randint(-product.levels, product.levels + 1, (rows, width)).to(torch.int8)
    weight = torch.randint(-127, 128, (size, width)).to(torch.int8)
    states[0], weight[0], weight[-1] = product.levels, 127, -127
    expected = states.double() @ weight.double().T
    assert torch.equal(product(states, product.pack(weight)).double(), expected)


def test_sums_at_the_widest_decoder_are_exact():
    product = OneDNN()
    if not int8_product._is_right(product, CPU):
        pytest.skip("this torch has no oneDNN linear layer")
    states = torch.full((2, product.widest), product.levels, dtype=torch.int8)
    weight = torch.full((3, product.widest), 127, dtype=torch.int8)
    weight[1, -1] = 126
    assert torch.equal(product(states, product.pack(weight)).double(), states.double() @ weight.double().T)


def test_candidates_are_few_where_few_words_open():
    hidden, weight, bias, mask, _, greatest = problem_with_close_calls()
    decoder = QuantisedDecoder(weight, greatest.amax(0) * 0 + 12.0, Plain())
    with always_screening():
        found = screened(hidden, weight, bias, mask, torch.full((500,), 12.0), decoder)
    assert 0 < int((greatest > 12).sum()) <= len(found.words) < 0.1 * greatest.numel()


def test_what_is_not_a_number_is_not_screened_away():
    hidden, weight, bias, mask, opening, _ = problem_with_close_calls()
    hidden[3, 0, 0] = torch.nan
    with always_screening():
        found = Screen().candidates(hidden, weight, bias, mask, opening + 100)
    assert set(found.documents.tolist()) == {3}


def ticking(plain: float, integer: float):
    """A clock by which whole products take `plain` seconds and integer ones `integer`, in turns."""
    state = {"now": 0.0, "calls": 0}

    def timer() -> float:
        calls, state["calls"] = state["calls"], state["calls"] + 1
        if calls % 2:
            state["now"] += plain if calls % 4 == 1 else integer
        return state["now"]

    return timer


@pytest.mark.parametrize(("plain", "integer"), [(2.0, 1.0), (1.0, 1.0), (1.0, 40.0)])
def test_speedup_is_the_ratio_of_times(plain, integer):
    assert speedup(Plain(), CPU, 16, ticking(plain, integer)) == pytest.approx(plain / integer)


def test_a_hopeless_product_is_timed_on_the_small_size_only():
    sizes = []

    class Watched(Plain):
        def __call__(self, states, packed):
            sizes.append(len(packed))
            return super().__call__(states, packed)

    speedup(Watched(), CPU, 16, ticking(1.0, 40.0))
    assert max(sizes) == 256


class Wrong(Plain):
    name = "wrong"

    def __call__(self, states, packed):
        return super().__call__(states, packed) + 1


class Missing(Plain):
    name = "missing"

    def pack(self, weight):
        return torch.ops.onednn.there_is_no_such_product(weight)


@pytest.mark.parametrize("product", [Wrong(), Missing()], ids=lambda product: product.name)
def test_a_wrong_or_missing_product_gains_nothing(product):
    assert speedup(product, CPU, 16, ticking(100.0, 1.0)) == 0


def test_a_decoder_too_wide_for_exact_sums_gains_nothing():
    assert speedup(OneDNN(), CPU, OneDNN.widest + 1, ticking(100.0, 1.0)) == 0


@pytest.mark.parametrize(("gains", "chosen"), [((3.0, 2.0), 0), ((1.5, 4.0), 1), ((1.1, 0.1), None), ((0, 0), None)])
def test_the_fastest_product_is_taken_and_none_that_does_not_pay(gains, chosen):
    products = (Plain(), Wrong())
    gain = dict(zip(products, gains, strict=True))
    with constants(int8_product, PRODUCTS=products, speedup=lambda product, *_: gain[product]):
        picked = int8_product._fastest_product.__wrapped__("cpu", 384, 1)
    assert picked is (None if chosen is None else products[chosen])


def test_the_probe_runs_once():
    calls = []
    int8_product._fastest_product.cache_clear()
    with constants(int8_product, speedup=lambda *arguments: calls.append(arguments) or 0.0):
        for _ in range(3):
            assert int8_product.fastest_product(CPU, 384) is None
    int8_product._fastest_product.cache_clear()
    assert len(calls) == len(int8_product.PRODUCTS)


def test_nothing_is_screened_where_no_product_pays():
    *problem, opening, _ = problem_with_close_calls()
    with always_screening(), never_screening():
        assert Screen().candidates(*problem, opening) is None


def test_small_problems_are_neither_probed_nor_screened():
    def probe(*_):
        raise AssertionError("probed")

    *problem, opening, _ = problem_with_close_calls()
    with constants(fastest_product=probe):
        assert Screen().candidates(*problem, opening) is None


def test_short_documents_with_too_many_candidates_are_left_to_whole_products_but_others_are_still_screened():
    hidden, weight, bias, mask, opening, greatest = problem_with_close_calls()
    made, screen, original = [], Screen(), QuantisedDecoder
    quiet = torch.zeros_like(hidden)
    share = (greatest > opening).float().mean()
    with (
        always_screening(),
        constants(QuantisedDecoder=lambda *given: made.append(1) or original(*given)),
        constants(TOKENS_TO_GATHER_ALL=float(mask.sum(1).float().mean() / share * 2)),
    ):
        for _ in range(2):
            assert screen.candidates(hidden, weight, bias, mask, opening) is None
            assert screen.candidates(quiet, weight, torch.zeros_like(bias), mask, opening) is not None
    assert len(made) == 1


@pytest.mark.parametrize(("length", "share"), [(16, 0.025), (64, 0.1), (512, 0.1)])
def test_share_of_candidates_that_pays_grows_with_the_length_of_the_documents(length, share):
    assert screening.most_candidates([length - 4, length + 4]) == pytest.approx(share)


def test_a_screen_that_is_off_does_not_read_the_weights():
    *problem, opening, _ = problem_with_close_calls()
    screen, marked = Screen(), []
    original = screening._row_marks
    with always_screening(), constants(MOST_CANDIDATES=0.1, _row_marks=lambda w: marked.append(1) or original(w)):
        for _ in range(3):
            assert screen.candidates(*problem, opening - 100) is None
    assert len(marked) == 1


def test_too_many_candidates_end_screening_until_the_gates_change():
    *problem, opening, _ = problem_with_close_calls()
    screen, bounds = Screen(), []
    original = screening.screened
    watched = lambda *arguments: bounds.append(1) or original(*arguments)  # noqa: E731
    with always_screening(), constants(MOST_CANDIDATES=0.1, screened=watched):
        assert screen.candidates(*problem, opening - 100) is None
        assert screen.candidates(*problem, opening - 100) is None
        assert len(bounds) == 1
        assert screen.candidates(*problem, opening + 5) is not None


def test_a_decoder_that_another_thread_prepares_meanwhile_is_not_taken_for_ours():
    *problem, opening, _ = problem_with_close_calls()
    original = screening._equal

    def equal_and_then_another(one, other):
        found = original(one, other)
        screen._kept = others
        return found

    with always_screening():
        expected = Screen().candidates(*problem, opening)
        closed, screen = Screen(), Screen()
        closed.candidates(*problem, torch.full_like(opening, torch.inf))
        others = closed._kept
        screen.candidates(*problem, opening)
        with constants(_equal=equal_and_then_another):
            found = screen.candidates(*problem, opening)
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


@pytest.mark.parametrize("change", ["in place", "new tensor", "fused optimiser", "loaded", "one entry through .data"])
def test_the_prepared_decoder_follows_the_weights(change):
    hidden, weight, bias, mask, _, _ = problem_with_close_calls()
    layer = torch.nn.Linear(24, 500)
    screen, opening = Screen(), torch.full((500,), 9.0)
    with always_screening():
        screen.candidates(hidden, layer.weight, bias, mask, opening)
        if change == "in place":
            with torch.no_grad():
                layer.weight.copy_(weight)
        elif change == "new tensor":
            layer.weight = torch.nn.Parameter(weight)
        elif change == "fused optimiser":
            layer.weight.grad = -weight
            torch.optim.AdamW(layer.parameters(), lr=1.0, fused=True).step()
        elif change == "loaded":
            layer.load_state_dict({"weight": weight, "bias": bias})
        else:
            layer.weight.data[17, 3] = 100.0
        found = screen.candidates(hidden, layer.weight, bias, mask, opening)
        fresh = Screen().candidates(hidden, layer.weight, bias, mask, opening)
    assert len(fresh.words) > 0
    for ours, theirs in zip(found, fresh, strict=True):
        assert torch.equal(ours, theirs)


def test_an_unchanged_decoder_is_prepared_once():
    *problem, opening, _ = problem_with_close_calls()
    made = []
    original = QuantisedDecoder
    screen = Screen()
    with always_screening(), constants(QuantisedDecoder=lambda *given: made.append(1) or original(*given)):
        for _ in range(3):
            screen.candidates(*problem, opening.clone())
    assert len(made) == 1


BANK = tiny.wordpiece().convert_tokens_to_ids("bank")


@pytest.mark.parametrize("gate", ["drelu", "gated_jumprelu", "jumprelu"])
@pytest.mark.parametrize("expander", [None, {"token_ids": (BANK,), "num_senses": 3}], ids=["plain", "senses"])
def test_a_models_sparse_code_is_the_same_with_and_without_screening(gate, expander):
    model = tiny.model(ModelConfig.model_validate({"gate": gate, "expander": expander}))
    ids, mask = tiny.batch()
    ids[0, 1:3], mask[2] = BANK, False
    if gate == "drelu":
        with torch.no_grad():
            model.gate.theta.sub_(1.0)
    plain = model.encode_sparse(ids, mask)
    with always_screening():
        model._screen = Watching()
        code = model.encode_sparse(ids, mask)
    assert model._screen.found is not None
    assert torch.equal(code.offsets, plain.offsets)
    assert torch.equal(code.ids, plain.ids)
    assert torch.equal(code.positions, plain.positions)
    torch.testing.assert_close(code.values, plain.values, atol=1e-5, rtol=1e-6)


@pytest.mark.parametrize("gate", ["drelu", "gated_jumprelu", "jumprelu"])
@pytest.mark.parametrize("way", [always_screening, never_screening])
@pytest.mark.parametrize("broken", ["bias", "states"])
@pytest.mark.parametrize(
    "others",
    [{}, {"neighbourhood": {"words_per_token": 4}}, {"expander": {"token_ids": (BANK,), "num_senses": 3}}],
    ids=["plain", "neighbourhood", "senses"],
)
def test_a_model_that_is_broken_shows_it(gate, way, broken, others):
    model = tiny.model(ModelConfig.model_validate({"gate": gate, **others}))
    model.start_from_backbone()
    ids, mask = tiny.batch()
    # Twice: before a word it is whole, whatever piece comes after.
    ids[:, 1:3] = BANK
    closed = tiny.wordpiece().convert_tokens_to_ids("[MASK]")
    with torch.no_grad(), way():
        if broken == "states":
            right = model.backbone.encoder_states
            model.backbone.encoder_states = lambda *given: right(*given) * torch.nan
        else:
            model.backbone.decoder_bias[[BANK, closed]] = torch.nan
        code = model.encode_sparse(ids, mask)
        at_positions = model.encode_positions(ids, mask, mask)
        dense = model.encode_document(ids, mask).sparse_vector
    assert dense.isnan().any(1).all()
    assert torch.equal(code.dense().isnan(), dense.isnan())
    assert at_positions.values.isnan().any()
    assert closed not in code.ids
    assert closed not in at_positions.ids


@pytest.mark.parametrize("gate", ["drelu", "gated_jumprelu"])
@pytest.mark.parametrize("way", [always_screening, never_screening])
def test_a_threshold_that_is_not_a_number_shows(gate, way):
    model = tiny.model(ModelConfig.model_validate({"gate": gate}))
    ids, mask = tiny.batch()
    with torch.no_grad(), way():
        model.gate.theta[BANK] = torch.nan
        code = model.encode_sparse(ids, mask)
    assert (code.ids[code.values.isnan()] == BANK).all()
    assert code.values.isnan().sum() == len(ids)


@pytest.mark.parametrize("way", [always_screening, never_screening])
def test_a_gate_that_is_replaced_is_the_gate_that_decides(way):
    model = tiny.model()
    ids, mask = tiny.batch()
    with torch.no_grad(), way():
        before = model.encode_sparse(ids, mask)
        other = GatedJumpReLU.Config(initial_threshold=0.1).build(len(model.dimensions)).eval()
        other.close(model.gate.closed)
        other.theta.copy_(model.max_logits(ids, mask).median(0).values + 1e-3)
        model.gate = other
        expected = model.encode_document(ids, mask).sparse_vector
        for one in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            code = one.encode_sparse(ids, mask)
            torch.testing.assert_close(code.dense(), expected, atol=1e-5, rtol=1e-5)
    assert 0 < len(code.ids) < len(before.ids)


def test_a_copied_models_gate_is_its_own():
    model = tiny.model()
    ids, mask = tiny.batch()
    other = copy.deepcopy(model)
    with torch.no_grad():
        model.gate.theta.fill_(1e6)
    assert len(model.encode_sparse(ids, mask).ids) == 0
    assert len(other.encode_sparse(ids, mask).ids) > 0


class Watching(Screen):
    found = None

    def candidates(self, *arguments):
        self.found = super().candidates(*arguments)
        return self.found


def test_a_model_that_has_screened_can_be_copied_and_pickled():
    model = tiny.model()
    ids, mask = tiny.batch()
    with always_screening(OneDNN() if int8_product._is_right(OneDNN(), CPU) else Plain()):
        code = model.encode_sparse(ids, mask)
        assert model._screen._kept is not None
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(other.encode_sparse(ids, mask).values, code.values)


def test_a_training_model_is_not_screened():
    model = tiny.model().train()
    model._screen = Watching()
    with always_screening():
        model.encode_sparse(*tiny.batch())
    assert model._screen.found is None
