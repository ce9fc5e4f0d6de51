"""Fitting and scoring a lexical head, and its card: scores, texts, and hashes of its encoder and tokenizer."""

import dataclasses
import hashlib
import platform
import shlex
from pathlib import Path
from typing import Any

import torch
import transformers

import lexical_sae
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.bundled import resolve_source
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.studies.lexical_head.fitting import FitReport, OnProgress, round_to_half, save_lexical_head
from lexical_sae.studies.lexical_head.fitting import fit_lexical_head as fit
from lexical_sae.studies.lexical_head.scores import (
    WordLogits,
    content_words,
    head_logits,
    identity_logits,
    measure_scale,
    score_relatedness,
    score_top_k,
)
from lexical_sae.studies.lexical_head.settings import LexicalHeadSettings
from lexical_sae.studies.lexical_head.states import Corruption, Positions, encode_positions
from lexical_sae.studies.lexical_head.text import Piece, PieceSplit, sample_pieces, scan_text, split_text
from lexical_sae.studies.lexical_head.wordnet import WordNet
from lexical_sae.utils.device import resolve_device, set_seed
from lexical_sae.utils.downloads import sha256_of
from lexical_sae.utils.errors import DataError

MOST_SCORED, MOST_RELATED = 20_000, 2_000


def fit_and_score(
    paths: list[Path],
    extra: dict[str, Path],
    out: Path,
    encoder: str,
    settings: LexicalHeadSettings,
    wordnet: Path | None,
    device: str,
    note: str,
    on_progress: OnProgress,
) -> dict[str, Any]:
    """The card of a head that was fitted, scored and saved."""
    database = None if wordnet is None else WordNet(wordnet)
    for path in [*paths, *extra.values()]:
        scan_text(path)
    set_seed(settings.seed)
    backbone = load_backbone(encoder, require_pretrained_head=False).to(resolve_device(device)).eval()
    vocabulary = Vocabulary(backbone.tokenizer, backbone.vocab_size)
    longest = min(settings.longest_piece, backbone.max_tokens - backbone.tokenizer.num_special_tokens_to_add())
    on_progress("reading text", 0.0)
    split = split_text(
        paths,
        vocabulary,
        tokens=settings.tokens,
        held_out_tokens=settings.held_out_tokens,
        longest=longest,
        seed=settings.seed,
    )
    scored = {"held_out": split.held_out}
    scored |= {
        name: sample_pieces(path, vocabulary, tokens=settings.held_out_tokens, longest=longest, seed=settings.seed)
        for name, path in extra.items()
    }
    on_progress("scoring the unfitted head", 0.0)
    sets = {name: ScoredText(backbone, pieces, vocabulary, database) for name, pieces in scored.items()}
    before = {name: text.controls(backbone) for name, text in sets.items()}
    report = fit(backbone, split, settings, on_progress)
    if settings.half_precision:
        round_to_half(backbone)
    on_progress("scoring the head", 1.0)
    scores = {name: text.scores(head_logits(backbone)) | before[name] for name, text in sets.items()}
    _require_useful(scores["held_out"], split)
    card = {
        "what": "Lexical head: transform and bias of a masked-LM head, fitted to a frozen encoder whose word embedding "
        "is the decoder. Not a pretrained masked language model.",
        "command": _command(paths, extra, encoder, settings, wordnet is not None),
        "encoder": {"name": _short_name(encoder), **fingerprints(encoder, backbone)},
        "data": describe_data(paths, split, extra, note),
        "settings": settings.model_dump(),
        "fit": describe_fit(report),
        "scores": scores,
        "parameters": sum(parameter.numel() for parameter in backbone.lexical_head().values()),
        "versions": {
            "lexical-sae": lexical_sae.__version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        },
    }
    save_lexical_head(backbone, out, card, torch.float16 if settings.half_precision else torch.float32)
    return card


def _require_useful(scores: dict[str, Any], split: PieceSplit) -> None:
    """Raise an error for a head worse than no head: models built on it would show noise."""
    controls = ("before_fitting", "identity_transform")
    without = max(scores[control]["unmasked"]["top1"] for control in controls if control in scores)
    fitted = scores["unmasked"]["top1"]
    if fitted <= without:
        raise DataError(
            f"the fitted head names {fitted:.1%} of the words, no head at all {without:.1%}: nothing was written. "
            f"Only {sum(map(len, split.training)):,} tokens of text could be used; give a few hundred thousand"
        )


def _command(
    paths: list[Path], extra: dict[str, Path], encoder: str, settings: LexicalHeadSettings, has_wordnet: bool
) -> str:
    """The command that reproduces this head, with file names for paths."""
    words = ["lexical-sae", "fit-lexical-head", "--encoder", _short_name(encoder)]
    for path in paths:
        words += ["--text", path.name]
    for name, path in extra.items():
        words += ["--held-out-text", f"{name}={path.name}"]
    for name in ("tokens", "held_out_tokens", "neighbour_share", "passes", "learning_rate", "seed"):
        words += [f"--{name.replace('_', '-')}", str(getattr(settings, name))]
    words += ["--half-precision"] if settings.half_precision else []
    words += ["--wordnet", "/usr/share/wordnet"] if has_wordnet else []
    return shlex.join([*words, "--out", "DIR"])


def _short_name(encoder: str) -> str:
    """The encoder's name for the card; the last part of a local folder."""
    return Path(encoder).name if Path(encoder).is_dir() else encoder


class ScoredText:
    """Encoder states of a text to score on: unmasked, masked, and at whole content words."""

    def __init__(
        self, backbone: Backbone, pieces: list[Piece], vocabulary: Vocabulary, wordnet: WordNet | None
    ) -> None:
        self.vocabulary, self.wordnet = vocabulary, wordnet
        clean = encode_positions(backbone, pieces, vocabulary)
        self.clean = _sample(clean, MOST_SCORED)
        with_masks = encode_positions(
            backbone, pieces, vocabulary, corruption=Corruption(1.0, masked=0.15, swapped=0.0)
        )
        self.masked = _sample(with_masks[with_masks.is_masked], MOST_SCORED)
        self.content: Positions | None = None
        if wordnet is not None:
            is_content = clean.is_whole_word & content_words(vocabulary, wordnet)[clean.targets]
            self.content = _sample(clean[is_content], MOST_RELATED)

    def scores(self, logits_of: WordLogits) -> dict[str, Any]:
        found = {
            "unmasked": dataclasses.asdict(score_top_k(logits_of, self.clean.states, self.clean.targets)),
            "masked": dataclasses.asdict(score_top_k(logits_of, self.masked.states, self.masked.targets)),
            "logit_scale": dataclasses.asdict(measure_scale(logits_of, self.clean.states, self.clean.targets)),
        }
        if self.content is not None and self.wordnet is not None:
            related = score_relatedness(
                logits_of, self.content.states, self.content.targets, self.vocabulary, self.wordnet
            )
            found["wordnet"] = dataclasses.asdict(related)
        return _rounded(found)

    def controls(self, backbone: Backbone) -> dict[str, Any]:
        """The same scores for the head before fitting and, where the widths agree, for no head at all."""
        controls = {"before_fitting": self.scores(head_logits(backbone))}
        if self.clean.states.shape[1] == backbone.width:
            controls["identity_transform"] = self.scores(identity_logits(backbone))
        return controls


def _sample(positions: Positions, most: int) -> Positions:
    order = torch.randperm(len(positions), generator=torch.Generator().manual_seed(0))
    return positions[order[:most]]


def _rounded(scores: dict[str, Any]) -> dict[str, Any]:
    return {
        group: {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}
        for group, values in scores.items()
    }


def fingerprints(encoder: str, backbone: Backbone) -> dict[str, str]:
    """Hashes of the encoder's weights and tokenizer: of their files, or of what a hub name loaded."""
    folder = Path(resolve_source(encoder))
    files = [folder / name for name in ("model.safetensors", "tokenizer.json")]
    if all(file.is_file() for file in files):
        return {f"{file.name} sha256": sha256_of(file) for file in files}
    weights = hashlib.sha256()
    for name, tensor in sorted(backbone.encoder.state_dict().items()):
        weights.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    vocabulary = repr(sorted(backbone.tokenizer.get_vocab().items())).encode()
    return {"weights sha256": weights.hexdigest(), "vocabulary sha256": hashlib.sha256(vocabulary).hexdigest()}


def describe_data(paths: list[Path], split: PieceSplit, extra: dict[str, Path], note: str) -> dict[str, Any]:
    def describe(path: Path) -> dict[str, Any]:
        size = scan_text(path)
        return {
            "file": path.name,
            "sha256": sha256_of(path),
            "characters": size.characters,
            "documents": size.documents,
        }

    return {
        "note": note,
        "text": [describe(path) for path in paths],
        "training_tokens": sum(map(len, split.training)),
        "training_pieces": len(split.training),
        "validation_tokens": sum(map(len, split.validation)),
        "held_out_tokens": sum(map(len, split.held_out)),
        "held_out_pieces": len(split.held_out),
        "only_scored_on": {name: describe(path) for name, path in extra.items()},
    }


def describe_fit(report: FitReport) -> dict[str, Any]:
    return dataclasses.asdict(report) | {"validation_losses": [round(loss, 4) for loss in report.validation_losses]}
