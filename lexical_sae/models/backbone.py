"""Any masked language model, taken apart into encoder, transform and decoder.

1. The model is split in three without looking at its architecture: the base model becomes `encoder`, the output
   embedding becomes `decoder`, and what lies between them `transform`.
2. A probe checks that `decoder(transform(encoder(x)))` still equals the logits of the whole model.

`pretrained` finds and loads what is taken apart here.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import (
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.modeling_outputs import BaseModelOutput

from lexical_sae.models.kept_states import KeptStates
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.precision import EncoderType, encoder_precision, refuse_half_precision


class _ReturnStates(nn.Module):
    """Stands where the base model was: hands the states it is given straight to the masked-LM head."""

    def forward(self, *_args: Any, inputs_embeds: Tensor, **_kwargs: Any) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=inputs_embeds)  # pyright: ignore[reportArgumentType]


class Transform(nn.Module):
    """The masked-LM head without its decoder: encoder states to the vectors the decoder multiplies."""

    def __init__(self, shell: PreTrainedModel) -> None:
        super().__init__()
        self.shell = shell

    def forward(self, states: Float[Tensor, "B L E"]) -> Float[Tensor, "B L D"]:
        # Under autocast the layers may compute in less; what follows does not.
        return self.shell(inputs_embeds=states).logits.to(states.dtype)


class Backbone(nn.Module):
    """Text to word logits: `encoder` > `transform` > `decoder`, for any `AutoModelForMaskedLM`.

    `decoder.weight` is tied to the input embedding in most families: never zero a row of it.
    """

    def __init__(self, mlm: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__()
        whole_logits = _probe_logits(mlm)
        decoder = mlm.get_output_embeddings()
        if not isinstance(decoder, nn.Linear):
            raise SavedFileError(
                f"{type(mlm).__name__} has no linear vocabulary decoder; choose a masked language model"
            )
        encoder = mlm.base_model
        _replace_module(mlm, decoder, nn.Identity())
        _replace_module(mlm, encoder, _ReturnStates())
        # This order gives shared tensors one name each: the tied weight is the encoder's, the bias the decoder's.
        self.encoder: nn.Module = encoder
        self.decoder = decoder
        self.transform = Transform(mlm)
        self.config: PreTrainedConfig = mlm.config
        self.tokenizer = tokenizer
        self.kept_states: KeptStates | None = None
        """While lower layers are frozen: where the states of texts come from."""
        self.encodes_in: EncoderType = "float32"
        """What the encoder computes in, whatever autocast a caller has; not saved."""
        _check_split(self, whole_logits)

    @property
    def vocab_size(self) -> int:
        """Rows of the decoder; may exceed the tokenizer's size."""
        return self.decoder.weight.shape[0]

    @property
    def decoder_bias(self) -> Float[Tensor, " V"]:
        """The decoder's bias; zeros for a decoder without one."""
        bias = self.decoder.bias
        return self.decoder.weight.new_zeros(self.vocab_size) if bias is None else bias

    @property
    def encoder_width(self) -> int:
        """E, the width of the encoder's states."""
        return int(self.config.hidden_size)

    @property
    def width(self) -> int:
        """D, the width of the vectors that the decoder multiplies."""
        return self.decoder.weight.shape[1]

    @property
    def max_tokens(self) -> int:
        """Longest input in tokens, special tokens included."""
        positions = getattr(getattr(self.encoder, "embeddings", None), "position_embeddings", None)
        limit = int(getattr(self.config, "max_position_embeddings", 512))
        if isinstance(positions, nn.Embedding):
            # RoBERTa-like models count positions from padding_idx + 1.
            limit = positions.num_embeddings - (0 if positions.padding_idx is None else positions.padding_idx + 1)
        return min(limit, int(self.tokenizer.model_max_length))

    @property
    def input_width(self) -> int:
        """Width of the vectors that the encoder reads tokens as."""
        return self._input_embedding.weight.shape[1]

    def input_embeddings(self) -> Float[Tensor, "V I"]:
        """The vectors that the encoder reads tokens as, padded to a row per word of the decoder."""
        rows = self._input_embedding.weight.detach()
        spare = self.vocab_size - len(rows)
        # Without spare rows these are the weights themselves: views for unseen words ask for them over and over.
        return torch.cat([rows, rows.new_zeros(spare, rows.shape[1])]) if spare else rows

    @property
    def _input_embedding(self) -> nn.Embedding:
        return self.encoder.get_input_embeddings()  # pyright: ignore[reportCallIssue]

    def encoder_states(
        self,
        input_ids: Int[Tensor, "B L"],
        attention_mask: Bool[Tensor, "B L"],
        added: Float[Tensor, "B L I"] | None = None,
    ) -> Float[Tensor, "B L E"]:
        """The encoder's last hidden states, whichever side the padding is on.

        Absolute positions count from the first column, so real tokens are moved to the front before encoding and
        back afterwards. What stands at padding positions is arbitrary but finite. `added` is added to the vectors that
        the encoder reads the tokens as. In the weights' precision, whatever autocast computed them in.
        """
        weight = self._input_embedding.weight
        refuse_half_precision(weight)
        order = _real_tokens_first(attention_mask)
        if order is not None:
            input_ids, attention_mask = input_ids.gather(1, order), attention_mask.gather(1, order)
            added = None if added is None else added.gather(1, order[..., None].expand_as(added))
        if self.kept_states is not None and added is None:
            states = self.kept_states(input_ids, attention_mask).to(weight.dtype)
        else:
            given = {"input_ids": input_ids}
            if added is not None:
                given = {"inputs_embeds": self._input_embedding(input_ids) + added}
            with encoder_precision(self.encodes_in, weight.device):
                states = self.encoder(**given, attention_mask=attention_mask.long()).last_hidden_state.to(weight.dtype)
        if order is not None:
            back = order.argsort(1)
            states = states.gather(1, back[..., None].expand_as(states))
        return states

    def hidden(
        self,
        input_ids: Int[Tensor, "B L"],
        attention_mask: Bool[Tensor, "B L"],
        added: Float[Tensor, "B L I"] | None = None,
    ) -> Float[Tensor, "B L D"]:
        """The vectors whose product with the decoder gives the word logits; `added` as in `encoder_states`."""
        return self.transform(self.encoder_states(input_ids, attention_mask, added))

    def lexical_head(self) -> dict[str, nn.Parameter]:
        """Parameters of the masked-LM head alone, by name: the transform and the decoder's bias."""
        own = {id(parameter) for parameter in self.encoder.parameters()}
        parts = {"decoder": self.decoder, "transform": self.transform}
        named = [(f"{part}.{name}", p) for part, module in parts.items() for name, p in module.named_parameters()]
        head: dict[str, nn.Parameter] = {}
        for name, parameter in named:
            if id(parameter) not in own:
                own.add(id(parameter))
                head[name] = parameter
        return head


def _replace_module(root: nn.Module, old: nn.Module, new: nn.Module) -> None:
    path = next(path for path, module in root.named_modules() if module is old)
    parent, _, leaf = path.rpartition(".")
    setattr(root.get_submodule(parent), leaf, new)


def _probe_inputs(config: PreTrainedConfig, device: torch.device) -> tuple[Tensor, Tensor]:
    size = int(config.vocab_size)
    ids = torch.arange(size - 6, size, device=device).clamp(min=0)[None]
    return ids, torch.ones_like(ids, dtype=torch.bool)


def _probe_logits(mlm: PreTrainedModel) -> Tensor | None:
    """Logits of the whole model for a few tokens; None on the meta device, where there is nothing to compare."""
    if mlm.device.type == "meta":
        return None
    ids, mask = _probe_inputs(mlm.config, mlm.device)
    with torch.no_grad(), evaluating(mlm):
        return mlm(input_ids=ids, attention_mask=mask.long()).logits


def _check_split(backbone: Backbone, whole_logits: Tensor | None) -> None:
    if whole_logits is None:
        return
    ids, mask = _probe_inputs(backbone.config, whole_logits.device)
    try:
        with torch.no_grad(), evaluating(backbone):
            logits = backbone.decoder(backbone.hidden(ids, mask))
    except (AttributeError, RuntimeError):
        # The head reaches into the encoder, or what we took for the decoder is something else.
        logits = torch.empty(0)
    if logits.shape != whole_logits.shape or not torch.allclose(logits, whole_logits, atol=1e-4, rtol=1e-4):
        raise SavedFileError(
            f"the masked-LM head of a {backbone.config.model_type!r} model does not end in a linear vocabulary "
            "decoder, so its word logits cannot be taken apart; choose another model"
        )


@contextlib.contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """With the module in evaluation mode, and afterwards in the one it was in."""
    was_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was_training)


def _real_tokens_first(mask: Bool[Tensor, "B L"]) -> Int[Tensor, "B L"] | None:
    """Column order that puts real tokens first, or None when they already are."""
    if not (mask[:, 1:] & ~mask[:, :-1]).any():
        return None
    return torch.argsort((~mask).to(torch.int8), dim=1, stable=True)
