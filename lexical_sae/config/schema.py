"""The menu: every key an experiment file may hold, with its meaning and default."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from lexical_sae.intervene.concepts.plan import SurgeryPlan
from lexical_sae.recipes.recipe import Recipe
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.part import PartConfig

DEFAULT_RECIPE, TAGGING_RECIPE = "anchored", "neighbours"
"""For texts, and for taggers: a literal word alone does not determine its tag."""


class DataConfig(PartConfig):
    """Which texts to train and test on."""

    dataset_name: str = "movie_snippets"
    """A named data set (docs/data.md lists them), or the path of your own data file."""
    path: str | None = None
    """Folder or file with the data, if it is not to be found by name."""
    train_samples: int = Field(default=-1, ge=-1)
    """Rows to train on, sampled at random but the same for the same seed; -1 takes all."""
    test_samples: int = Field(default=-1, ge=-1)
    """Rows to test on; -1 takes all."""
    text_column: str | None = None
    """Column with the text in your own file; null infers it and prints the choice."""
    label_column: str | None = None
    """Column with the label in your own file; null infers it and prints the choice."""
    label_columns: tuple[str, ...] = ()
    """Columns of 0 and 1 in your own file, one per label, where texts have any number of labels."""
    label_separator: str | None = None
    """What stands between the labels of a cell of your own file, where texts have any number of labels; cells that are
    lists, or JSON lists, need none but `target: labels`."""
    target: str | None = None
    """What your own file has for a text: `classes` (one of several labels), `labels` (any number of them) or `number`;
    null means classes, or labels where either of the two settings above is given."""
    skip_bad_rows: bool = False
    """Whether rows of your own file without text or label are left out, and counted, instead of refused."""
    unlabelled: str | None = None
    """A file of further texts, without labels, that say what words mean, for the recipe `anchored`. At most 5,000 are
    read; texts of validation and test are left out. Its column is `text_column`, or inferred. Worth it where labelled
    texts are few."""
    documents: str | None = None
    """For `lexical-sae ner`: texts with a label each, for a model that tags words and classifies texts. A data set
    as in `dataset_name` whose labels are tags, or `sentences`: the tagged sentences themselves, each labelled with the
    `B-` tag of the type it names most often (the first of several), or `O`. null trains a tagger alone."""


class EvaluationConfig(PartConfig):
    """Seeds of a run, and what is measured after training."""

    seeds: tuple[Annotated[int, Field(ge=0, lt=2**32)], ...] = Field(default=(0,), min_length=1)
    """Seeds of the runs, one run each. `seed: 7` at the top of the file is short for
    `seeds: [7]`."""
    after_training: bool = True
    """Whether a model is evaluated on its test texts when it is trained; for a classifier, false leaves that to
    `lexical-sae evaluate`."""
    texts: int = Field(default=500, ge=0)
    """Most test texts to evaluate on, or sentences of a tagger, at random; 0 takes all. Accuracy and active words are
    always those of all."""
    explainer_texts: int = Field(default=10, ge=0)
    """Test texts for comparing attribution methods after training, sampled at random; 0 leaves that to
    `lexical-sae faithfulness`. Classifiers only."""
    names_texts: int = Field(default=100, ge=0)
    """Most test texts for the name tests after training, sampled at random; 0 leaves them to `lexical-sae names`."""

    @field_validator("seeds")
    @classmethod
    def _once_each(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds):
            raise SettingsError(f"evaluation.seeds {list(seeds)} names a seed twice")
        return seeds


class MechanisticConfig(PartConfig):
    """What the evaluation after training measures about circuits."""

    circuit_fraction: float = Field(default=0.1, gt=0, le=1)
    """Share of a text's active words that is its circuit where classes are compared."""
    sae_comparison: bool = False
    """Whether sparse autoencoders are fitted to the encoder afterwards and compared with the words
    (`lexical-sae sae`)."""


class VPEConfig(PartConfig):
    """Virtual Polysemy Expansion: sense slots for chosen words."""

    enabled: bool = False
    """Whether the words below are split into senses."""
    token_ids: tuple[int, ...] = ()
    """Vocabulary ids of the words to split."""
    num_senses: int = Field(default=4, ge=2)
    """Slots per word, its own dimension included."""

    @model_validator(mode="after")
    def _has_words(self) -> "VPEConfig":
        if self.enabled and not self.token_ids:
            raise SettingsError("vpe.enabled is true but vpe.token_ids is empty; list the words to split")
        return self


class ExperimentConfig(Recipe):
    """One experiment: a recipe with its overrides, the data, and where results go."""

    experiment_name: str = "experiment"
    """Name printed with the results."""
    output_dir: str = "results/experiment"
    """Folder for everything the run writes."""
    recipe: str = DEFAULT_RECIPE
    """Which generation of the method: anchored, cajt, cis, lexical_sae or transcoder; or neighbours, the default of
    `lexical-sae ner`."""
    data: DataConfig = DataConfig()
    """The texts."""
    vpe: VPEConfig = VPEConfig()
    """Sense slots for ambiguous words."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Seeds and measurements."""
    mechanistic: MechanisticConfig = MechanisticConfig()
    """Circuits in the evaluation."""
    surgery: SurgeryPlan | None = None
    """What `lexical-sae surgery` removes from the trained model; null: its options do. Training ignores it."""
    datasets: tuple[str, ...] = ()
    """Data sets of `lexical-sae multi-dataset`, one experiment each, instead of `data.dataset_name`. Other
    commands refuse it."""
    variants: dict[str, dict[str, Any]] = {}
    """Variants of `lexical-sae ablation` and similar commands, one experiment each: the name, and what it changes, as
    keys with dots (docs/experiments.md). With `datasets`: settings of one data set, by its name."""

    @field_validator("output_dir")
    @classmethod
    def _at_home(cls, folder: str) -> str:
        """The folder with "~" expanded, so that it is the same place everywhere."""
        return str(Path(folder).expanduser())

    @field_validator("datasets")
    @classmethod
    def _once_each(cls, datasets: tuple[str, ...]) -> tuple[str, ...]:
        for name in datasets:
            if datasets.count(name) > 1:
                raise SettingsError(f"datasets {list(datasets)} names {name} twice")
        return datasets
