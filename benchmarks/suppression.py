"""Is a removed word really gone? `python -m benchmarks.suppression MODEL WORD [DATA] [TEXTS]` counts on train texts.

In how many texts the word is active, and whether what it contributes is exactly zero: as the model is, with the word
closed, and with the closed model saved and loaded. The dense strengths are looked at, bit by bit.
"""

import sys
import tempfile

import torch

from splade import LexicalSAE, load_text_dataset
from splade.data.batches import TokenisedTexts, length_buckets, tokenise
from splade.intervene import find_words, suppress_token_globally
from splade.mechanistic.attribution import attribute_centred


def main() -> None:
    folder, word = sys.argv[1:3]
    name, limit = (sys.argv[3:] + ["sst2", "10000"][len(sys.argv) - 3 :])[:2]
    model = LexicalSAE.from_pretrained(folder).eval()
    texts = tokenise(model.tokenizer, load_text_dataset(name).train.texts[: int(limit)], model.max_length)
    embedding = model.backbone.encoder.get_input_embeddings().weight.detach().clone()
    closed = torch.tensor([i for found in find_words(model, [word]) for i in found.dimensions])
    print(f"{word!r} is dimension {', '.join(model.dimensions.names(closed.tolist()))}; {len(texts):,} texts of {name}")
    _count("before", model, texts, closed)
    suppress_token_globally(model, word)
    _count("closed", model, texts, closed)
    with tempfile.TemporaryDirectory() as place:
        again = LexicalSAE.from_pretrained(model.save_pretrained(f"{place}/model")).eval()
    _count("closed, saved and loaded", again, texts, closed)
    kept = again.backbone.encoder.get_input_embeddings().weight
    print(f"input embedding bitwise unchanged: {torch.equal(kept, embedding)}")


@torch.no_grad()
def _count(title: str, model: LexicalSAE, texts: TokenisedTexts, closed: torch.Tensor) -> None:
    active = bits = said = 0
    for rows in length_buckets(texts, 64):
        batch = texts.batch(rows)
        state = model.classify_document(batch.input_ids, batch.attention_mask)
        strengths = state.sparse_vector[:, closed].contiguous()
        active += int((strengths != 0).any(1).sum())
        # As integers: minus zero and the smallest number would count too.
        bits += int((strengths.view(torch.int32) != 0).sum())
        said += int((attribute_centred(state, state.logits.argmax(-1))[:, closed] != 0).sum())
    print(f"{title}: active in {active:,} texts, {bits:,} strengths with a bit set, {said:,} contributions not zero")


if __name__ == "__main__":
    main()
