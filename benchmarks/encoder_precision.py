"""What a lower precision of the encoder gains, and how far it moves states: `python -m benchmarks.encoder_precision`.

The bundled encoder on film reviews, one thread: single precision, int8 by torch's dynamic quantisation of its linear
layers, and bfloat16 by autocast where the processor has it. Times are processor time; errors are the mean change of the
states at real tokens, as a share of their mean size.
"""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.scoring import cut_out
from lexical_sae.data.batches import Batch, tokenize
from lexical_sae.models.backbone import load_backbone
from lexical_sae.utils.cost import timed
from lexical_sae.utils.precision import cpu_problem_with_bfloat16, encoder_precision, keeping_casts

BATCH, ROUNDS = 32, 3
CPU = torch.device("cpu")


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(1)
    backbone = load_backbone(reads_logits=False).eval()
    with warnings.catch_warnings():
        # torch announces another package for it.
        warnings.simplefilter("ignore")
        quantized = torch.ao.quantization.quantize_dynamic(backbone.encoder, {nn.Linear}, dtype=torch.qint8)
    for words in (8, 16, 64):
        batch = tokenize(backbone.tokenizer, cut_out(BATCH, words, seed=0), 512).batch(range(BATCH))
        measure(f"{words:3} words", ways(backbone.encoder, quantized, batch))


def ways(encoder: nn.Module, quantized: nn.Module, batch: Batch) -> dict[str, Callable[[], Tensor]]:
    """How to make the states at real tokens, in single precision first."""

    def states(of: nn.Module) -> Tensor:
        found = of(input_ids=batch.input_ids, attention_mask=batch.attention_mask.long()).last_hidden_state
        return found.float()[batch.attention_mask]

    def in_bfloat16() -> Tensor:
        with encoder_precision("bfloat16", CPU):
            return states(encoder)

    found: dict[str, Callable[[], Tensor]] = {"float32": lambda: states(encoder), "int8": lambda: states(quantized)}
    return found if cpu_problem_with_bfloat16() else {**found, "bfloat16": in_bfloat16}


def measure(what: str, runs: dict[str, Callable[[], Tensor]]) -> None:
    """Print the best time of some rounds, and the error, of each way."""
    exact = runs["float32"]()
    single = None
    with keeping_casts(CPU):
        for name, run in runs.items():
            found, milliseconds = min((timed(run) for _ in range(ROUNDS)), key=lambda pair: pair[1])
            single = single or milliseconds
            error = float((found - exact).abs().mean() / exact.abs().mean())
            figures = f"{milliseconds / BATCH:6.2f} ms per text, {single / milliseconds:.2f}x, error {error:.1%}"
            print(f"{what}, {name:8}: {figures}", flush=True)


if __name__ == "__main__":
    main()
