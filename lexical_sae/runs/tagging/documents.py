"""Texts with one label each for a model that also tags: derived from tagged sentences, or a data set of their own."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.data import TaggedDataset, TaggedSplit, TextDataset, TextSplit
from lexical_sae.data.tagging import encode_tags, entity_spans
from lexical_sae.runs.inputs import load_data
from lexical_sae.utils.errors import DataError

SENTENCES = "sentences"
"""Value of `data.documents` for the tagged sentences themselves."""


def load_documents(config: ExperimentConfig, dataset: TaggedDataset, seed: int) -> TextDataset | None:
    """The texts that `data.documents` names, labelled with the tags of `dataset`; None if it names none."""
    named = config.data.documents
    if named is None:
        return None
    if named == SENTENCES:
        return sentences_as_documents(dataset)
    data = config.data.model_copy(update={"dataset_name": named, "path": None, "documents": None})
    return with_labels(load_data(config.model_copy(update={"data": data}), seed), dataset.tag_names)


def sentences_as_documents(dataset: TaggedDataset) -> TextDataset:
    """Every sentence as a text with its `main_tag`, in the same splits."""

    def texts(split: TaggedSplit) -> TextSplit:
        labels = encode_tags([main_tag(tags) for tags in split.tags], dataset.tag_names)
        return TextSplit(tuple(" ".join(words) for words in split.tokens), tuple(labels))

    train, validation, test = map(texts, (dataset.train, dataset.validation, dataset.test))
    return TextDataset(dataset.name, dataset.tag_names, train, validation, test)


def main_tag(tags: Sequence[str]) -> str:
    """The tag that opens an entity of the type with most entities, the first of several; `O` without any.

    Example: ["B-LOC", "O", "B-PER", "I-PER", "B-PER"] -> "B-PER"
    """
    counts = Counter(entity.type for entity in entity_spans(tags))
    return f"B-{counts.most_common(1)[0][0]}" if counts else "O"


def with_labels(texts: TextDataset, names: Sequence[str]) -> TextDataset:
    """The same texts with labels counted in another list of names, which has to hold all of theirs."""
    if unknown := sorted(set(texts.label_names) - set(names)):
        raise DataError(
            f"{texts.name} has label {unknown[0]!r}, which is not a tag of the sentences: documents and words have the "
            f"same labels here ({', '.join(names)}); rename the labels, or train two models"
        )
    place = [names.index(name) for name in texts.label_names]

    def counted(split: TextSplit) -> TextSplit:
        return replace(split, labels=tuple(place[label] for label in split.labels))

    splits = {name: counted(getattr(texts, name)) for name in ("train", "validation", "test")}
    return replace(texts, label_names=tuple(names), **splits)
