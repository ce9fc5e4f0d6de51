"""Pretrained encoders by name: found, loaded, and refused where their words would mean nothing.

1. A name is resolved to a folder (`bundled:minilm`, a local folder) or a hub name.
2. transformers loads it; a masked-LM head that is not in the checkpoint is refused, or filled from a lexical head.
3. `Backbone` takes it apart.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from lexical_sae.models.backbone import Backbone
from lexical_sae.models.bundled import DEFAULT_BACKBONE, bundled_head, resolve_source
from lexical_sae.utils.errors import SavedFileError

HEAD_FILE = "lexical_head.safetensors"
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "spm.model", "tokenizer.model")


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


def _some(keys: list[str], most: int = 3) -> str:
    rest = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(keys[:most]) + rest


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
