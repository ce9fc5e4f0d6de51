"""Rounding errors of the exact methods on real texts, and the distance of direct attribution from removal effects.

`python -m benchmarks.exactness MODEL [DATA] [TEXTS]` reads the test texts of a data set (SST-2 unless another is named)
and prints one figure per line.
"""

import sys

import torch

from lexical_sae import LexicalSAE, load_text_dataset
from lexical_sae.data.batches import length_buckets, tokenize
from lexical_sae.inference import explain
from lexical_sae.inference.reading import read_batch
from lexical_sae.mechanistic.attribution import code_identity_error
from lexical_sae.mechanistic.exact import (
    WordSets,
    along_path,
    attribute_towards,
    class_centered,
    leave_one_out,
    predict_removal,
    remove,
    strongest,
)

TOP = 5


@torch.no_grad()
def main() -> None:
    model = LexicalSAE.from_pretrained(sys.argv[1]).eval()
    name, limit = (sys.argv[2:] + ["sst2", "1000"][len(sys.argv) - 2 :])[:2]
    texts = list(load_text_dataset(name).test.texts[: int(limit)])
    tokenized = tokenize(model.tokenizer, texts, model.max_length)
    figures: dict[str, list[torch.Tensor]] = {}

    def note(title: str, values: torch.Tensor) -> None:
        figures.setdefault(title, []).append(values.double().flatten())

    head = model.head()
    for rows in length_buckets(tokenized, 64):
        state = read_batch(model, tokenized.batch(rows))
        direction = class_centered(state.logits, state.logits.argmax(-1))
        note("worst gap of direct attribution, relative", code_identity_error(state))
        note("worst gap of path attribution, relative", code_identity_error(along_path(head, state)))
        single = leave_one_out(head, state)
        exact, direct = single.effects.towards(direction), attribute_towards(state, direction)
        note("single removals that switch hidden units", single.region_changed)
        note("single removals whose effect has the other sign", exact * direct < 0)
        together = WordSets.together(state.code, strongest(state.code, direct, TOP))
        left = remove(head, state, together).effects.logits_without(state.logits).argmax(-1)
        foretold = predict_removal(state, together).logits_without(state.logits).argmax(-1)
        note(f"texts whose label changes without their {TOP} strongest words", left != state.logits.argmax(-1))
        note("texts where direct attribution foretells the wrong label after that", left != foretold)
    for explanation in explain(model, texts):
        scores = [span.score for span in explanation.spans or ()]
        gap = abs(sum(scores) + (explanation.whole_text or 0.0) + explanation.bias - explanation.explained)
        size = max(1.0, sum(abs(word.contribution) for word in explanation.words))
        note("worst gap of scores of places, relative", torch.tensor([gap / size]))
    print(f"{len(texts)} texts of {name}")
    for title, values in figures.items():
        found = torch.cat(values)
        print(f"{found.max():.1e}  {title}" if title.startswith("worst") else f"{found.mean():7.1%}  {title}")


if __name__ == "__main__":
    main()
