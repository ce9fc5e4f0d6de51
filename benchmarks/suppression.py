"""Is a suppressed word exactly zero? `python -m benchmarks.suppression MODEL WORD [DATA] [TEXTS]`, on train texts.

Texts in which the word is active, and whether its contribution is exactly zero: before, with the word suppressed, and
after saving and loading that model. Dense activations are compared bit by bit.
"""

import sys
import tempfile

import torch

from lexical_sae import LexicalSAE, load_text_dataset
from lexical_sae.data.batches import TokenizedTexts, length_buckets, tokenize
from lexical_sae.intervene import find_words, suppress_token_globally
from lexical_sae.mechanistic.attribution import attribute_centered


def main() -> None:
    folder, word = sys.argv[1:3]
    name, limit = (sys.argv[3:] + ["sst2", "10000"][len(sys.argv) - 3 :])[:2]
    model = LexicalSAE.from_pretrained(folder).eval()
    texts = tokenize(model.tokenizer, load_text_dataset(name).train.texts[: int(limit)], model.max_length)
    embedding = model.backbone.encoder.get_input_embeddings().weight.detach().clone()
    closed = torch.tensor([i for found in find_words(model, [word]) for i in found.dimensions])
    print(f"{word!r} is dimension {', '.join(model.dimensions.names(closed.tolist()))}; {len(texts):,} texts of {name}")
    _count("before", model, texts, closed)
    suppress_token_globally(model, word)
    _count("suppressed", model, texts, closed)
    with tempfile.TemporaryDirectory() as place:
        again = LexicalSAE.from_pretrained(model.save_pretrained(f"{place}/model")).eval()
    _count("suppressed, saved and loaded", again, texts, closed)
    kept = again.backbone.encoder.get_input_embeddings().weight
    print(f"input embedding bitwise unchanged: {torch.equal(kept, embedding)}")


@torch.no_grad()
def _count(title: str, model: LexicalSAE, texts: TokenizedTexts, closed: torch.Tensor) -> None:
    active = bits = contributing = 0
    for rows in length_buckets(texts, 64):
        batch = texts.batch(rows)
        state = model.classify_document(batch.input_ids, batch.attention_mask)
        activations = state.sparse_vector[:, closed].contiguous()
        active += int((activations != 0).any(1).sum())
        # As integers: minus zero and the smallest number would count too.
        bits += int((activations.view(torch.int32) != 0).sum())
        contributing += int((attribute_centered(state, state.logits.argmax(-1))[:, closed] != 0).sum())
    print(f"{title}: active in {active:,} texts; not zero: {bits:,} activations, {contributing:,} contributions")


if __name__ == "__main__":
    main()
