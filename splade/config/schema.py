"""The menu: every key an experiment file may hold, with its meaning and default."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from splade.config.surgery_plan import SurgeryPlan
from splade.models.config import ModelConfig
from splade.part import PartConfig
from splade.training.settings import TrainingConfig

DEFAULT_RECIPE, TAGGING_RECIPE = "anchored", "neighbours"
"""For texts, and for words: one literal word alone does not tell its tag."""


class DataConfig(PartConfig):
    """Which texts to learn from and to be measured on."""

    dataset_name: str = "movie_snippets"
    """A named data set (docs/data.md lists them), or the path of your own CSV, TSV or JSONL file."""
    path: str | None = None
    """Folder or file with the data, if it is not to be looked for by name."""
    train_samples: int = Field(default=-1, ge=-1)
    """Rows to train on, drawn at random but the same for the same seed; -1 takes all."""
    test_samples: int = Field(default=-1, ge=-1)
    """Rows to test on; -1 takes all."""
    text_column: str | None = None
    """Column that holds the text in your own file; null guesses and says so."""
    label_column: str | None = None
    """Column that holds the label in your own file; null guesses and says so."""
    skip_bad_rows: bool = False
    """Whether rows of your own file without text or label are left out, and counted, instead of refused."""
    documents: str | None = None
    """For `lexical-sae ner`: texts with a label each, for a model that tags words and also classifies texts. A data set
    as in `dataset_name` whose labels are tags, or `sentences`: the tagged sentences themselves, each labelled with the
    `B-` tag of the type it names most often (the first of several), or `O`. null trains a tagger alone."""


class EvaluationConfig(PartConfig):
    """How often and how a run is measured."""

    seeds: tuple[Annotated[int, Field(ge=0, lt=2**32)], ...] = Field(default=(0,), min_length=1)
    """Seeds of the runs, one run each. `seed: 7` at the top of the file is short for
    `seeds: [7]`."""
    after_training: bool = True
    """Whether a model is evaluated on its test texts when it is trained; for a classifier, false leaves that to
    `lexical-sae evaluate`."""
    texts: int = Field(default=500, ge=0)
    """Most test texts to evaluate on, or sentences of a tagger, by lot; 0 takes all. Accuracy and active words are
    always those of all."""
    explainer_texts: int = Field(default=10, ge=0)
    """Test texts to compare attribution methods on after training, sampled at random; 0 leaves that to
    `lexical-sae faithfulness`. Classifiers only."""
    names_texts: int = Field(default=100, ge=0)
    """Most test texts to try the names on after training, drawn by lot; 0 leaves that to `lexical-sae names`."""

    @field_validator("seeds")
    @classmethod
    def _once_each(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds):
            raise ValueError(f"evaluation.seeds {list(seeds)} names a seed twice")
        return seeds


class MechanisticConfig(PartConfig):
    """What the evaluation after training asks about circuits."""

    circuit_fraction: float = Field(default=0.1, gt=0, le=1)
    """Share of a text's active words that is called its circuit where classes are compared."""
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
            raise ValueError("vpe.enabled is true but vpe.token_ids is empty; list the words to split")
        return self


class Recipe(PartConfig):
    """Everything a generation of the method fixes; an experiment file may override any field."""

    model: ModelConfig
    """The parts of the model."""
    training: TrainingConfig
    """How it is trained."""

    @model_validator(mode="after")
    def _can_be_calibrated(self) -> "Recipe":
        start, gate = self.training.calibrated_start, self.model.gate
        if start is not None and not gate.offset:
            raise ValueError(
                f"training.calibrated_start {start} shifts the gate's offset, and model.gate {gate.kind!r} has none; "
                f"set model.gate: {{kind: {gate.kind}, offset: true}}, or training.calibrated_start: null"
            )
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
    """What `lexical-sae surgery` removes from the trained model; null: its options say. Training ignores it."""
    datasets: tuple[str, ...] = ()
    """Data sets of `lexical-sae multi-dataset`, an experiment each, in the place of `data.dataset_name`. Other commands
    want none."""
    variants: dict[str, dict[str, Any]] = {}
    """Variants of `lexical-sae ablation` and its kin, an experiment each: the name, and what it changes, as keys with
    dots (docs/experiments.md). With `datasets`: what is particular to a data set, by its name."""

    @field_validator("output_dir")
    @classmethod
    def _at_home(cls, folder: str) -> str:
        """The folder with "~" written out, so that all who write to it mean the same place."""
        return str(Path(folder).expanduser())

    @field_validator("datasets")
    @classmethod
    def _once_each(cls, datasets: tuple[str, ...]) -> tuple[str, ...]:
        for name in datasets:
            if datasets.count(name) > 1:
                raise ValueError(f"datasets {list(datasets)} names {name} twice")
        return datasets
