"""Captum's sampled explanations of the same model, at the input: integrated gradients and LIME.

They score words of the text, not of the vocabulary, so they are compared where words of the text are deleted.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from splade.evaluation.arena.attention import per_word
from splade.evaluation.arena.case import Case, Scores, read_case
from splade.evaluation.arena.explainer import Told
from splade.evaluation.arena.masked_reading import mask_id
from splade.models.lexical_sae import LexicalSAE

STEPS, SAMPLES, AT_ONCE = 50, 1000, 50
MISSING = (
    "integrated gradients and LIME at the input need captum, which is not installed: pip install captum, or "
    "lexical-sae[arena]"
)


@dataclass(frozen=True)
class CaptumGradients:
    """Integrated gradients at the embedding, from a text of masks; a word has the sum of its tokens."""

    steps: int = STEPS
    name: str = "input_integrated_gradients"
    is_drawn: bool = False
    is_in_logits: bool = True

    @property
    def about(self) -> str:
        return f"integrated gradients at the embedding (captum, {self.steps} steps)"

    def explain(self, case: Case, seed: int) -> Told:
        """Scores of the text's words."""
        del seed
        from captum.attr import LayerIntegratedGradients

        ids = _ids(case)
        embeddings: Any = case.model.backbone.encoder
        integrated = LayerIntegratedGradients(lambda ids: _decide(case, ids), embeddings.get_input_embeddings())
        masks = torch.full_like(ids, mask_id(case))
        found: Any = integrated.attribute(ids, baselines=masks, n_steps=self.steps, internal_batch_size=AT_ONCE)
        return Told(written=per_word(case, found[0].sum(-1).detach().cpu()))


@dataclass(frozen=True)
class CaptumLime:
    """A linear model of what masking random sets of words does. A word goes as a whole, and so does what is none."""

    samples: int = SAMPLES
    name: str = "input_lime"
    is_drawn: bool = True
    is_in_logits: bool = True

    @property
    def about(self) -> str:
        return f"LIME over the words of the text (captum, {self.samples} samples)"

    def explain(self, case: Case, seed: int) -> Told:
        """Scores of the text's words."""
        from captum.attr import Lime

        ids, words = _ids(case), case.layout.token_words
        features = torch.tensor([[0 if word is None else word + 1 for word in words]], device=ids.device)
        with torch.random.fork_rng():
            torch.manual_seed(int(case.drawn(seed).integers(2**31)))
            found = Lime(lambda ids: _decide(case, ids).detach()).attribute(
                ids.float(),
                baselines=float(mask_id(case)),
                feature_mask=features,
                n_samples=self.samples,
                perturbations_per_eval=AT_ONCE,
            )
        return Told(written=_of_first_token(case, found[0].cpu()))


def captum_explainers(steps: int = STEPS, samples: int = SAMPLES) -> tuple[CaptumGradients, CaptumLime]:
    """Both; an ImportError that names the remedy where captum is missing."""
    try:
        import captum.attr  # noqa: F401
    except ImportError as error:
        raise ImportError(MISSING) from error
    return CaptumGradients(steps), CaptumLime(samples)


def explain_text(explainer: CaptumGradients | CaptumLime, model: LexicalSAE, text: str) -> Scores:
    """One text from scratch, prediction included: what a person who has only captum pays."""
    written = explainer.explain(read_case(model, 0, text), seed=0).written
    assert written is not None
    return written


def _ids(case: Case) -> Int[Tensor, "1 L"]:
    return case.read.batch.input_ids.to(next(case.model.parameters()).device)


def _decide(case: Case, ids: Tensor) -> Float[Tensor, " N"]:
    """The explained number for token ids, which captum hands over as it likes."""
    ids = ids.long()
    return case.explained(case.model.classify_document(ids, torch.ones_like(ids, dtype=torch.bool)).logits)


def _of_first_token(case: Case, of_tokens: Float[Tensor, " L"]) -> Scores:
    """The score that all tokens of a word share."""
    words = case.layout.token_words
    return of_tokens[[words.index(word) for word in range(case.num_written)]]
