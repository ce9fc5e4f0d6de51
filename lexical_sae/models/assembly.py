"""What a new model is assembled from, each checked: labels, dimensions and their vectors, heads.

Before that the words of its training texts: those that the tokenizer splits get dimensions too.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lexical_sae.data.batches import tokenize
from lexical_sae.data.dimensions import DimensionTable
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.heads import TAG
from lexical_sae.models.layers.cut_words import frequent_cut_words
from lexical_sae.models.layers.literal_words import multi_piece_words
from lexical_sae.models.long_texts import longest_text
from lexical_sae.models.table_head import TableHead
from lexical_sae.outputs import CLASSES, Classes, OutputKind
from lexical_sae.utils.errors import SettingsError

if TYPE_CHECKING:
    from lexical_sae.models.lexical_sae import LexicalSAE


def with_words_of(config: ModelConfig, backbone: Backbone, texts: Sequence[str]) -> ModelConfig:
    """The settings with dimensions for words that the tokenizer splits: literal words all, others by frequency."""
    return _with_multi_piece_words(_with_cut_words(config, backbone, texts), backbone, texts)


def dimension_table(config: ModelConfig, vocabulary: Vocabulary) -> DimensionTable:
    """The vocabulary, and after it what the parts append: words it splits, senses, shapes."""
    appended = config.literal or config.neighbourhood
    cut_words = appended.dimensions() if appended else []
    senses = config.expander.dimensions(vocabulary) if config.expander else []
    shapes = config.shapes.dimensions() if config.shapes else []
    return DimensionTable(vocabulary, [*cut_words, *senses, *shapes], numbers=config.literal is not None)


def never_open(config: ModelConfig, dimensions: DimensionTable) -> Bool[Tensor, " V"]:
    """Dimensions whose gate is closed for good: no features, out of every neighbourhood, or no literal words."""
    vocabulary, closed = dimensions.vocabulary, ~dimensions.feature_mask
    if config.neighbourhood:
        unnamed = ~config.neighbourhood.nameable(vocabulary)
        _check_split_words_are_named(config, vocabulary, unnamed)
        closed[: vocabulary.size] |= unnamed
    if config.literal:
        closed[: vocabulary.size] |= ~vocabulary.word_mask
    return closed


def dimension_embeddings(model: "LexicalSAE") -> Float[Tensor, "V D"]:
    """The decoder's row of each dimension's word: senses of a word share theirs, a shape has a random one.

    A word that the tokenizer cuts up has the mean of its tokens'.
    """
    rows = model.backbone.decoder.weight.detach()
    if model.literal is not None:
        rows = model.literal.embeddings(rows)
    elif model.neighbourhood is not None and len(model.neighbourhood.cut):
        rows = torch.cat([rows, model.neighbourhood.cut.embeddings(rows)])
    if model.expander is not None:
        senses = model.expander.token_ids.repeat_interleave(model.expander.num_senses - 1)
        rows = torch.cat([rows, rows[senses]])
    if model.shapes is not None:
        drawn = torch.randn(len(model.shapes), rows.shape[1], generator=torch.Generator().manual_seed(0))
        rows = torch.cat([rows, rows.mean(0) + rows.std() * drawn.to(rows)])
    return rows


def build_heads(config: ModelConfig, size: int, labels: Mapping[str, Sequence[str]]) -> dict[str, nn.Module]:
    """A new head per name; with `shared_head`, one head under every name."""
    if not config.shared_head:
        return {name: config.head.build(size, len(own)) for name, own in labels.items()}
    return dict.fromkeys(labels, config.head.build(size, len(next(iter(labels.values())))))


def add_heads(model: "LexicalSAE", names: Sequence[str], like: str) -> None:
    """New heads for the labels of another one, for as long as training needs them."""
    size, labels = len(model.dimensions), model.labels[like]
    for name in names:
        head = model.config.head.build(size, len(labels)).to(next(model.head(like).parameters()))
        if isinstance(head, TableHead):
            head.make_room(model.backbone.input_width)
        model.heads[name], model.labels[name] = head, labels


def drop_heads(model: "LexicalSAE", names: Sequence[str]) -> None:
    """Take heads away again."""
    for name in names:
        del model.heads[name], model.labels[name]


def _with_multi_piece_words(config: ModelConfig, backbone: Backbone, texts: Sequence[str]) -> ModelConfig:
    """The settings with every word of these texts that the tokenizer splits; a list that is given stays."""
    if config.literal is None or config.literal.multi_piece_words or not texts:
        return config
    read = tokenize(backbone.tokenizer, texts, longest_text(config, backbone))
    vocabulary = Vocabulary(backbone.tokenizer, backbone.vocab_size)
    words = multi_piece_words(map(vocabulary.split_words, read.ids), vocabulary)
    return config.model_copy(update={"literal": config.literal.model_copy(update={"multi_piece_words": words})})


def _with_cut_words(config: ModelConfig, backbone: Backbone, texts: Sequence[str]) -> ModelConfig:
    """The settings with the words that get a dimension because of these texts; a list that is given stays."""
    near = config.neighbourhood
    if near is None or near.cut_words or not near.most_cut_words or not texts:
        return config
    read = tokenize(backbone.tokenizer, texts, min(config.max_length, backbone.max_tokens))
    vocabulary = Vocabulary(backbone.tokenizer, backbone.vocab_size)
    words = frequent_cut_words(read.ids, vocabulary, near.most_cut_words, function_words=near.function_words)
    return config.model_copy(update={"neighbourhood": near.model_copy(update={"cut_words": words})})


def _check_split_words_are_named(config: ModelConfig, vocabulary: Vocabulary, unnamed: Bool[Tensor, " V"]) -> None:
    """No token could ever open the senses of a word that has no neighbourhood."""
    dead = [vocabulary.names[i] for i in (config.expander.token_ids if config.expander else ()) if unnamed[i]]
    if dead:
        raise SettingsError(
            f"vpe.token_ids splits {', '.join(map(repr, dead))}, which no token may activate in a neighbourhood "
            "(function words, single letters and word pieces have none): split other words, or leave one of the two out"
        )


def checked_labels(
    config: ModelConfig, labels: Mapping[str, Sequence[str]], output: OutputKind
) -> dict[str, tuple[str, ...]]:
    """The labels of each head, fit for what the model puts out."""
    if not isinstance(output, Classes) and config.literal is None:
        raise SettingsError(
            f"{output.title}: that is for models with literal words (recipe anchored); leave the recipe out"
        )
    checked = {name: tuple(values) for name, values in labels.items()}
    if not checked:
        raise SettingsError("a model needs at least one head, e.g. labels={'classify': ['negative', 'positive']}")
    for name, values in checked.items():
        if not name.isidentifier() or hasattr(nn.ModuleDict, name):
            raise SettingsError(f"head {name!r} cannot be named so; choose a plain name such as 'classify' or 'tag'")
        least = CLASSES.least_names if name == TAG else output.least_names
        if len(values) < least:
            wanted = "at least two labels" if least == CLASSES.least_names else "a name of what it puts out"
            raise SettingsError(f"head {name!r} needs {wanted}, got {list(values)}")
        if len(set(values)) < len(values):
            raise SettingsError(f"head {name!r} has a label twice: {list(values)}")
    if config.shared_head:
        _check_labels_can_be_shared(checked)
    return checked


def _check_labels_can_be_shared(labels: Mapping[str, tuple[str, ...]]) -> None:
    """One head has one list of labels, and is shared only if several tasks use it."""
    if len(labels) < 2:
        raise SettingsError(
            f"model.shared_head is one head for several tasks, but this model has only {next(iter(labels))!r}; give "
            "labels for 'classify' and 'tag' (data.documents in an experiment), or set model.shared_head: false"
        )
    (first, expected), *others = labels.items()
    for name, values in others:
        if values != expected:
            raise SettingsError(
                f"model.shared_head needs the same labels in the same order for every task, but {first!r} has "
                f"{list(expected)} and {name!r} has {list(values)}; make them equal, or set model.shared_head: false"
            )
