"""Any masked language model, taken apart into encoder, transform and decoder.

1. A name is resolved to a folder (`bundled:minilm`, a local folder) or a hub name.
2. transformers loads it; a masked-LM head that is not in the checkpoint is refused, or filled from a lexical head.
3. The model is split in three without looking at its architecture: the base model becomes `encoder`, the output
   embedding becomes `decoder`, and what lies between them `transform`.
4. A probe checks that `decoder(transform(encoder(x)))` still equals the logits of the whole model.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils import logging as transformers_logging

from lexical_sae.models.bundled import DEFAULT_BACKBONE, bundled_head, resolve_source
from lexical_sae.models.kept_states import KeptStates
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.precision import EncoderType, encoder_precision, refuse_half_precision

HEAD_FILE = "lexical_head.safetensors"
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "spm.model", "tokenizer.model")


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


def load_backbone(
    name: str = DEFAULT_BACKBONE,
    *,
    lexical_head: str | Path | None = None,
    require_pretrained_head: bool = True,
    reads_logits: bool = True,
) -> Backbone:
    """The backbone behind `bundled:minilm`, a local folder or a hub name, its masked-LM head known to be trained.

    Args:
        name: What to load.
        lexical_head: A folder made by `lexical-sae fit-lexical-head`; it replaces the head of the checkpoint.
        require_pretrained_head: False leaves a head that is missing at random numbers, to be fitted.
        reads_logits: False for a model whose words are literal: nothing is read from the masked-LM head, so none is
            needed, and one that is missing is the identity with a bias of zero.
    """
    source = resolve_source(name)
    if require_pretrained_head:
        lexical_head = lexical_head or bundled_head(name)
    mlm, tokenizer, missing = _load_pretrained(source, name)
    prefix = mlm.base_model_prefix + "."
    if broken := sorted(key for key in missing if key.startswith(prefix)):
        raise SavedFileError(
            f"the checkpoint of {name!r} lacks encoder weights ({_some(broken)}); download it again or choose another"
        )
    has_no_head = bool(missing) and lexical_head is None
    if has_no_head and require_pretrained_head and reads_logits:
        raise SavedFileError(
            f"{name!r} has no pretrained masked-LM head (missing: {_some(sorted(missing))}). With a random head the "
            f"words mean nothing. Fit one with `lexical-sae fit-lexical-head --encoder {name} --text FILE --out DIR` "
            "and set model.lexical_head to DIR, choose a model that was published with its masked-LM head, or take "
            "literal words, which need none (recipe: anchored, the default for documents)"
        )
    backbone = Backbone(mlm, tokenizer)
    if has_no_head and not reads_logits:
        _neutralize(backbone)
    if lexical_head is not None:
        load_lexical_head(backbone, Path(lexical_head))
    return backbone


@torch.no_grad()
def _neutralize(backbone: Backbone) -> None:
    """Make the head the identity as far as its layers allow: the same for every seed, and of no opinion on words."""
    for parameter in backbone.lexical_head().values():
        if parameter.dim() == 2:
            nn.init.eye_(parameter)
        else:
            parameter.zero_()
    for module in backbone.transform.modules():
        if isinstance(module, nn.LayerNorm) and module.weight is not None:
            module.weight.fill_(1.0)


def backbone_from_config(config: dict[str, Any], tokenizer: PreTrainedTokenizerBase) -> Backbone:
    """A backbone of the given architecture with fresh weights, to be overwritten by saved ones."""
    settings = {key: value for key, value in config.items() if key not in ("model_type", "auto_map")}
    built = AutoConfig.for_model(config["model_type"], **settings)
    return Backbone(AutoModelForMaskedLM.from_config(built, trust_remote_code=False), tokenizer)


def load_tokenizer(source: str | Path) -> PreTrainedTokenizerBase:
    """The fast tokenizer in a folder or on the hub; one without character offsets is refused."""
    folder = Path(source)
    if folder.is_dir() and not any((folder / name).is_file() for name in TOKENIZER_FILES):
        # transformers would quietly make a tokenizer that knows no word.
        raise SavedFileError(
            f"{folder} holds no tokenizer ({', '.join(TOKENIZER_FILES)}); copy the model's tokenizer there"
        )
    tokenizer = AutoTokenizer.from_pretrained(str(source), trust_remote_code=False)
    if not tokenizer.is_fast:
        raise SavedFileError(f"the tokenizer of {str(source)!r} has no fast version, which word positions need")
    tokenizer.padding_side = "right"
    return tokenizer


def load_lexical_head(backbone: Backbone, folder: Path) -> None:
    """Copy a fitted lexical head into the backbone; names and shapes must be the backbone's own."""
    path = folder / HEAD_FILE if folder.is_dir() else folder
    if not path.is_file():
        raise FileNotFoundError(f"no lexical head at {path}; make one with `lexical-sae fit-lexical-head`")
    wanted = backbone.lexical_head()
    with open_safetensors(path) as file:
        shapes = {key: list(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
        expected = {key: list(parameter.shape) for key, parameter in wanted.items()}
        if shapes != expected:
            odd = sorted(key for key in shapes.keys() | expected.keys() if shapes.get(key) != expected.get(key))
            raise SavedFileError(f"{path} was fitted for another encoder: {_some(odd)} do not fit this one")
        with torch.no_grad():
            for key, parameter in wanted.items():
                parameter.copy_(file.get_tensor(key))


@contextlib.contextmanager
def open_safetensors(path: Path) -> Iterator[Any]:
    """An open safetensors file; a damaged one is refused by name."""
    try:
        with safe_open(str(path), framework="pt") as file:
            yield file
    except SafetensorError as error:
        raise SavedFileError(f"{path} is truncated or corrupt ({error}); restore it or make it again") from error


def _load_pretrained(source: str, name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, set[str]]:
    """The masked LM in fp32, its tokenizer, and the keys that the checkpoint did not have."""
    try:
        with quiet_transformers():
            mlm, report = AutoModelForMaskedLM.from_pretrained(
                source,
                config=without_attention_dropout(AutoConfig.from_pretrained(source, trust_remote_code=False)),
                output_loading_info=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
            )
            tokenizer = load_tokenizer(source)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise SavedFileError(
            f"cannot load the backbone {name!r}: {_first_line(error)}. Give a folder with config.json, "
            "model.safetensors and a tokenizer, a hub name that this machine can reach, or 'bundled:minilm'"
        ) from error
    return mlm, tokenizer, set(report["missing_keys"])


def without_attention_dropout(config: PreTrainedConfig) -> PreTrainedConfig:
    """The same architecture without dropout on attention weights, which keeps the fast attention kernels in training.

    Families spell the setting differently (`attention_dropout`, `attention_probs_dropout_prob`); all name both words.
    """
    for key in config.to_dict():
        if "attention" in key and "dropout" in key:
            setattr(config, key, 0.0)
    return config


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """transformers' load report and bar are replaced by our own errors."""
    level = transformers_logging.get_verbosity()
    bar_was_on = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bar_was_on:
            transformers_logging.enable_progress_bar()


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
    with torch.no_grad(), _evaluating(mlm):
        return mlm(input_ids=ids, attention_mask=mask.long()).logits


def _check_split(backbone: Backbone, whole_logits: Tensor | None) -> None:
    if whole_logits is None:
        return
    ids, mask = _probe_inputs(backbone.config, whole_logits.device)
    try:
        with torch.no_grad(), _evaluating(backbone):
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
def _evaluating(module: nn.Module) -> Iterator[None]:
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


def _some(keys: list[str], most: int = 3) -> str:
    rest = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(keys[:most]) + rest


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
