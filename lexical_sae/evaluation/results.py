"""The results of an evaluation: typed, versioned, written to and read from `evaluation.json`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from lexical_sae.evaluation.intervals import read_result
from lexical_sae.evaluation.metrics.metric import Metric
from lexical_sae.evaluation.metrics.registry import all_metrics
from lexical_sae.utils.errors import SavedFileError

SCHEMA_VERSION = 1
"""Of the layout of `evaluation.json`; raise it when a key changes its name or meaning, not when a metric is added."""
Result = TypeVar("Result")
View = TypeVar("View")


@dataclass(frozen=True)
class EvaluationResults:
    """Everything measured on one split, by metric: `results.get(METRIC)`, or by key, as in `results.performance`."""

    texts: int
    labels: tuple[str, ...]
    seed: int
    measured: Mapping[str, Any]
    """The result of each metric by its key; None where it does not apply, or there were too few texts."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall time of each part; `reading` is the pass that all streamed metrics share."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What a file says of its origin: `model`, `data`, `split`, `most_texts`."""
    unreadable: tuple[str, ...] = ()
    """Keys of metrics that a file holds in a form that this version does not know."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Why metrics were not measured that are not defined for the model's output kind."""
    schema_version: int = SCHEMA_VERSION

    def get(self, metric: Metric[Result | None]) -> Result | None:
        """The result of a metric; None where it was not measured."""
        return self.measured.get(metric.key)

    def views(self, metric: Metric[Result | None], make: Callable[[Result], Iterable[View]]) -> list[View]:
        """What `make` shows of a metric's result; nothing where the metric was not measured."""
        found = self.get(metric)
        return [] if found is None else list(make(found))

    def __getattr__(self, key: str) -> Any:
        # By `__dict__`: copying and unpickling ask for attributes before there are any.
        measured = self.__dict__.get("measured", {})
        if key not in measured:
            raise AttributeError(f"this evaluation has no {key!r}; it has {', '.join(measured) or 'no metrics'}")
        return measured[key]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.measured]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` reads it back."""
        return {
            **self.about,
            **{"texts": self.texts, "labels": self.labels, "seed": self.seed},
            **{key: _plain(result) for key, result in self.measured.items()},
            **({"skipped": dict(self.skipped)} if self.skipped else {}),
            **{"seconds": dict(self.seconds), "schema_version": self.schema_version},
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "EvaluationResults":
        """The results that `evaluation.json` holds, from any version so far.

        Args:
            found: The parsed file. Metrics that it lacks are absent; those that cannot be read are listed in
                `unreadable`.

        Returns:
            The typed results.

        Raises:
            ValueError: If the file was written by a newer version.
        """
        version = found.get("schema_version", 1)
        if version > SCHEMA_VERSION:
            raise SavedFileError(
                f"this evaluation has version {version}, and this program reads up to {SCHEMA_VERSION}: "
                "update lexical-sae, or evaluate again"
            )
        measured: dict[str, Any] = {}
        unreadable: list[str] = []
        for metric in all_metrics():
            if metric.key not in found:
                continue
            try:
                measured[metric.key] = read_result(metric.result_type, found[metric.key])
            except ValidationError:
                unreadable.append(metric.key)
        about = {key: found[key] for key in ("model", "data", "split", "most_texts") if key in found}
        return cls(
            texts=found["texts"],
            labels=tuple(found["labels"]),
            seed=found["seed"],
            measured=measured,
            seconds=found.get("seconds", {}),
            about=about,
            unreadable=tuple(unreadable),
            schema_version=version,
            skipped=found.get("skipped", {}),
        )


def _plain(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_plain, result))
    return None if result is None else asdict(result)
