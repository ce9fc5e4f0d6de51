"""Captum's sampled explanations of the same model, at the input: integrated gradients and LIME.

They score words of the text, not of the vocabulary, so they are compared where words of the text are deleted. Like
there, only words are masked: special tokens stay.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.evaluation.explainers.attention import per_word
from lexical_sae.evaluation.explainers.case import Case, Scores, mask_id, read_case
from lexical_sae.evaluation.explainers.explainer import Answer
from lexical_sae.models.lexical_sae import LexicalSAE

REFERENCE = "Ribeiro et al. 2016, arXiv:1602.04938"
STEPS, SAMPLES, AT_ONCE = 50, 1000, 50
KERNEL_WIDTH = 0.25
"""Of LIME for texts: 25 where distances are given in hundredths."""
MISSING = (
    "integrated gradients and LIME at the input need captum, which is not installed: pip install captum, or "
    "lexical-sae[arena]"
)


@dataclass(frozen=True)
class CaptumGradients:
    """Integrated gradients at the embedding, from the text with all words masked; a word has the sum of its tokens."""

    steps: int = STEPS
    name: str = "input_integrated_gradients"
    is_drawn: bool = False
    is_in_logits: bool = True

    @property
    def about(self) -> str:
        return f"integrated gradients at the embedding (captum, {self.steps} steps)"

    def explain(self, case: Case, seed: int) -> Answer:
        """Scores of the text's words."""
        del seed
        from captum.attr import LayerIntegratedGradients  # pyright: ignore[reportMissingImports]

        ids = _ids(case)
        embeddings: Any = case.model.backbone.encoder
        integrated = LayerIntegratedGradients(lambda ids: _decide(case, ids), embeddings.get_input_embeddings())
        masks = ids.masked_fill(_is_word(case), mask_id(case))
        found: Any = integrated.attribute(ids, baselines=masks, n_steps=self.steps, internal_batch_size=AT_ONCE)
        return Answer(written=per_word(case, found[0].sum(-1).detach().cpu()))


@dataclass(frozen=True)
class CaptumLime:
    """A linear model of what masking random sets of words does; a word goes as a whole."""

    samples: int = SAMPLES
    name: str = "input_lime"
    is_drawn: bool = True
    is_in_logits: bool = True

    @property
    def about(self) -> str:
        return f"LIME over the words of the text (captum, {self.samples} samples)"

    def explain(self, case: Case, seed: int) -> Answer:
        """Scores of the text's words."""
        from captum.attr import Lime  # pyright: ignore[reportMissingImports]

        ids, words = _ids(case), case.layout.token_words
        features = torch.tensor([[0 if word is None else word + 1 for word in words]], device=ids.device)
        is_word = _is_word(case)
        with torch.random.fork_rng():
            torch.manual_seed(int(case.drawn(seed).integers(2**31)))
            # Captum gives every token to some feature; what is no word comes back before the model reads.
            found = Lime(
                lambda masked: _decide(case, masked.long().where(is_word, ids)).detach(), similarity_func=nearness
            ).attribute(
                ids.float(),
                baselines=float(mask_id(case)),
                feature_mask=features,
                n_samples=self.samples,
                perturbations_per_eval=AT_ONCE,
            )
        return Answer(written=_of_first_token(case, found[0].cpu()))


def captum_explainers(steps: int = STEPS, samples: int = SAMPLES) -> tuple[CaptumGradients, CaptumLime]:
    """Both; an ImportError that names the remedy where captum is missing."""
    try:
        import captum.attr  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(MISSING) from error
    return CaptumGradients(steps), CaptumLime(samples)


def explain_text(explainer: CaptumGradients | CaptumLime, model: LexicalSAE, text: str) -> Scores:
    """One text from scratch, prediction included: what a person who has only captum pays."""
    written = explainer.explain(read_case(model, 0, text), seed=0).written
    assert written is not None
    return written


def nearness(_text: Tensor, _masked: Tensor, is_left: Tensor, **_: object) -> float:
    """LIME's weight of a masked text: a Gaussian kernel of the cosine distance between its words and all of them.

    Captum's own measures the distance between token *ids*, so that masking a word counts by its place in the
    vocabulary. `is_left` holds a 0 or 1 for what is no word, then for every word.

    Example: three of four words left -> distance 1 - sqrt(3/4), weight 0.87
    """
    words = is_left.flatten()[1:].double()
    distance = 1 - math.sqrt(float(words.mean()))
    return math.exp(-(distance**2) / (2 * KERNEL_WIDTH**2))


def _ids(case: Case) -> Int[Tensor, "1 L"]:
    return case.read.batch.input_ids.to(next(case.model.parameters()).device)


def _is_word(case: Case) -> Bool[Tensor, "1 L"]:
    """Which tokens belong to a word; the others are never masked."""
    words = case.layout.token_words
    return torch.tensor([[word is not None for word in words]], device=next(case.model.parameters()).device)


def _decide(case: Case, ids: Tensor) -> Float[Tensor, " N"]:
    """The explained number for token ids, which captum hands over as it likes."""
    ids = ids.long()
    return case.explained(case.model.classify_document(ids, torch.ones_like(ids, dtype=torch.bool)).logits)


def _of_first_token(case: Case, of_tokens: Float[Tensor, " L"]) -> Scores:
    """The score that all tokens of a word share."""
    words = case.layout.token_words
    return of_tokens[[words.index(word) for word in range(case.num_written)]]
