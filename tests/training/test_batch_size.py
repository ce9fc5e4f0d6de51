import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lexical_sae.training.preparation.batch_size import (
    PEAK_FACTOR,
    MicroBatches,
    automatic_size,
    available_memory,
    fitting_size,
    is_out_of_memory,
    step_bytes,
)

CPU = torch.device("cpu")


@given(st.integers(1, 600), st.integers(0, 1000), st.integers(1, 50), st.integers(1, 40_000))
def test_the_size_fits_and_no_larger_power_of_two_would(wanted, fixed, per_text, budget):
    size = fitting_size(wanted, lambda n: fixed + per_text * n, budget)
    assert size == wanted or size & (size - 1) == 0
    assert fixed + per_text * size <= budget or size == 1
    if size < wanted:
        assert 2 * size >= wanted or fixed + per_text * 2 * size > budget


def test_the_worked_example_holds():
    assert fitting_size(48, lambda n: 20 + 10 * n, 400) == 32
    assert fitting_size(48, lambda n: 20 + 10 * n, 500) == 48
    assert fitting_size(48, lambda n: 20 + 10 * n, 1) == 1


def test_a_probe_that_does_not_grow_does_not_limit():
    assert fitting_size(64, lambda n: 100 - n, 200) == 64


def test_what_a_step_keeps_for_its_backward_pass_is_counted_once():
    weight = nn.Parameter(torch.randn(100, 200))

    def step():
        x = torch.randn(50, 100)
        y = x @ weight
        (y * y + y.exp()).sum().backward()
        weight.grad = None

    # Kept: x for the matrix product (weight is not: x needs no gradient), y once although both terms use it, exp(y).
    floats = 50 * 100 + 50 * 200 + 50 * 200
    assert step_bytes(step, CPU) == PEAK_FACTOR * 4 * floats


def test_the_automatic_size_follows_what_a_step_takes(monkeypatch):
    weight = nn.Parameter(torch.randn(1000, 1000))

    def step(n):
        (torch.randn(n, 1000) @ weight).square().sum().backward()
        weight.grad = None

    # 12 kB a text with the factor: input and output of the product.
    monkeypatch.setattr("lexical_sae.training.preparation.batch_size.available_memory", lambda _: 1_000_000)
    assert automatic_size(256, step, CPU) == 32
    monkeypatch.setattr("lexical_sae.training.preparation.batch_size.available_memory", lambda _: None)
    assert automatic_size(256, step, CPU) == 256


def system(tmp_path, cgroup: str, files: dict[str, str]):
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal:       9000 kB\nMemAvailable:   8000 kB\nHugePages_Total:       0\n")
    (proc / "self/cgroup").write_text(cgroup)
    for name, text in files.items():
        path = cgroups / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return proc, cgroups


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        ("", {}, 8000 * 1024),
        ("0::/\n", {}, 8000 * 1024),
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/b/memory.current": "5\n"}, 8000 * 1024),
        ("0::/a/b\n", {"a/b/memory.max": "1000000\n", "a/b/memory.current": "400000\n"}, 600_000),
        (
            "0::/a/b\n",
            {
                "a/b/memory.max": "max",
                "a/b/memory.current": "1",
                "a/memory.max": "900000",
                "a/memory.current": "500000",
                "a/memory.stat": "anon 1\ninactive_file 100000\n",
            },
            500_000,
        ),
        ("0::/on/the/host\n", {"memory.max": "300000", "memory.current": "100000"}, 200_000),
        (
            "9:name=systemd:/\n4:memory:/job\n0::/\n",
            {
                "memory/job/memory.limit_in_bytes": "700000",
                "memory/job/memory.usage_in_bytes": "100000",
                "memory/memory.limit_in_bytes": "9223372036854771712",
                "memory/memory.usage_in_bytes": "100000",
            },
            600_000,
        ),
        ("0::/a\n", {"a/memory.max": "100", "a/memory.current": "200"}, 0),
    ],
    ids=["none", "root", "no limit", "limit", "parent", "container", "version 1", "exceeded"],
)
def test_available_memory_respects_control_groups(tmp_path, cgroup, files, expected):
    assert available_memory(CPU, *system(tmp_path, cgroup, files)) == expected


def test_available_memory_is_unknown_where_the_system_does_not_tell(tmp_path):
    assert available_memory(CPU, tmp_path, tmp_path) is None


def test_available_memory_here_is_a_number_or_unknown():
    here = available_memory(CPU)
    assert here is None or here > 0


@given(st.lists(st.integers(), max_size=70), st.integers(1, 40))
def test_pieces_hold_every_row_once_in_order_and_are_about_equal(rows, size):
    pieces = MicroBatches(size).split(rows)
    assert [row for piece in pieces for row in piece] == rows
    lengths = [len(piece) for piece in pieces]
    assert not lengths or (max(lengths) <= size and max(lengths) - min(lengths) <= 1 and min(lengths) > 0)


def test_out_of_memory_halves_the_pieces_and_the_gradient_is_that_of_the_whole_batch(caplog):
    weight = nn.Parameter(torch.randn(4, dtype=torch.float64))
    x = torch.randn(13, 4, dtype=torch.float64)
    expected = torch.autograd.grad((x @ weight).square().mean(), weight)[0]
    tried = []

    def work(rows, share):
        tried.append(len(rows))
        loss = (x[rows] @ weight).square().mean()
        (loss * share).backward()
        if len(rows) > 3:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes")
        return loss.item()

    def reset():
        weight.grad = None

    micro = MicroBatches(64)
    results = micro.run(list(range(13)), work, reset)
    assert tried == [13, 5, 3, 3, 3, 2, 2]
    assert micro.size == 3
    assert len(results) == 5
    torch.testing.assert_close(weight.grad, expected)
    assert "out of memory with 13 texts at once; going on with 6" in caplog.text
    micro.run(list(range(13)), work, reset)
    assert max(tried[-5:]) == 3, "what was learnt is kept"


def test_one_text_that_does_not_fit_is_an_error_with_the_knob_to_turn():
    def work(_rows, _share):
        raise MemoryError

    with pytest.raises(MemoryError, match=r"lower model\.max_length or choose a smaller backbone"):
        MicroBatches(8).run([1, 2, 3], work, lambda: None)


def test_other_errors_pass_through_at_once():
    calls = []

    def work(rows, _share):
        calls.append(rows)
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        MicroBatches(8).run([1, 2], work, lambda: None)
    assert calls == [[1, 2]]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"), True),
        (RuntimeError("MPS backend out of memory"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: not enough memory"), True),
        (RuntimeError("shape mismatch"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_out_of_memory_is_recognised_on_every_device(error, expected):
    assert is_out_of_memory(error) == expected


def test_the_message_of_the_cpu_allocator_is_recognized():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
