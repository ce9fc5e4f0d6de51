"""What the estimators share: settings, a fitted model inside, and how it is kept.

1. Parameters become an experiment's settings, as in a YAML file, and `fit` trains as the command line does.
2. Fits of one process take turns, and leave the global random state as they found it.
3. Pickled, a model is the files that `save` would write, as bytes: safetensors and JSON.
"""

import json
import logging
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from numbers import Integral, Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from lexical_sae.config.load import build_config
from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.models.bundled import BUNDLED, BUNDLED_PREFIX
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.persistence import CONFIG, from_pretrained, save_pretrained
from lexical_sae.report.progress import ProgressBars
from lexical_sae.runs.seeds import Watchers
from lexical_sae.training.resuming.random_state import chance_as_found
from lexical_sae.utils.device import resolve_device
from lexical_sae.utils.errors import SavedFileError, SettingsError

logger = logging.getLogger(__name__)

ESTIMATOR_FILE = "estimator.json"
"""Name of the file in a saved model's folder that holds the estimator's parameters and classes."""
MODEL = "model"
"""Folder of the model in that of a run."""
BUNDLED_NAMES = tuple(name.removeprefix(BUNDLED_PREFIX) for name in BUNDLED)
"""Encoders that are called by name; anything else is a folder or a hub name."""

_one_fit_at_a_time = threading.RLock()
"""Training draws from global random state, so fits in threads of one process take turns."""


E = TypeVar("E", bound="LexicalEstimator")


class LexicalEstimator(BaseEstimator):
    """An estimator around a `LexicalSAE`."""

    encoder: str
    recipe: str
    active_words: float | None
    max_epochs: int | None
    minutes: float | None
    validation_fraction: float
    device: str
    random_state: Any
    verbose: Any
    model_: LexicalSAE
    seed_: int

    def _settings(self, *, without_context: bool = False) -> ExperimentConfig:
        """The experiment that the parameters describe."""
        model: dict[str, Any] = {"name": self._encoder()}
        if without_context:
            model["context"] = None
        training: dict[str, Any] = {}
        if self.active_words is not None:
            training["active_target"] = float(_positive("active_words", self.active_words))
        if self.max_epochs is not None:
            training["max_epochs"] = int(_positive("max_epochs", self.max_epochs, Integral, "a whole number from 1 up"))
        settings = build_config({"recipe": self.recipe, "model": model, "training": training})
        if without_context and settings.model.literal is None:
            raise SettingsError(
                f"context=False fits a table of literal words, which recipe {self.recipe!r} does not have; use anchored"
            )
        return settings

    def _encoder(self) -> str:
        return BUNDLED_PREFIX + self.encoder if self.encoder in BUNDLED_NAMES else str(self.encoder)

    @contextmanager
    def _training(self, callbacks: Sequence[Any] = ()) -> Iterator[Watchers]:
        """Around a fit: its progress and its end, one at a time, the global random state as it was afterwards."""
        if self.minutes is not None:
            _positive("minutes", self.minutes)
        if not isinstance(callbacks, list | tuple):
            raise SettingsError(f"callbacks is {type(callbacks).__name__}; give a list of objects, such as [Losses()]")
        with ExitStack() as stack:
            stack.enter_context(_one_fit_at_a_time)
            stack.enter_context(chance_as_found())
            given: dict[str, Any] = {"on_note": logger.info, "callbacks": callbacks}
            if self.verbose:
                console = Console(stderr=True)
                given["on_step"] = stack.enter_context(ProgressBars(console))
                given["on_note"] = lambda note: console.print(note, markup=False, highlight=False)
            if self.minutes is not None:
                end = time.monotonic() + 60 * self.minutes
                given["is_out_of_time"] = lambda: time.monotonic() >= end
            yield Watchers(**given)

    def _new_seed(self) -> int:
        """The seed of a fit: `random_state` itself, one drawn from it, or a fresh one for None."""
        if self.random_state is None:
            return secrets.randbits(31)
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31 - 1))
        if isinstance(self.random_state, np.random.Generator):
            return int(self.random_state.integers(2**31 - 1))
        if not isinstance(self.random_state, Integral) or not 0 <= int(self.random_state) < 2**32:
            raise SettingsError(f"random_state is {self.random_state!r}; give a whole number from 0 up to 2**32 - 1")
        return int(self.random_state)

    def _fitted_model(self) -> LexicalSAE:
        check_is_fitted(self, "model_")
        return self.model_

    def _with_model(self: E, model: LexicalSAE) -> E:
        """An equal estimator around another model."""
        other: Any = clone(self)
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_") and name != "model_"}
        vars(other).update(fitted, model_=model)
        return other

    # Keeping

    def _to_keep(self) -> dict[str, Any]:
        """What is fitted beside the model, as JSON has it."""
        return {}

    def _take_back(self, kept: Mapping[str, Any]) -> None:
        """The reverse of `_to_keep`; without anything kept, what follows from the model."""
        raise NotImplementedError

    def _attached(self) -> dict[str, str]:
        """Further files to save with the model."""
        return {}

    def save(self, folder: str | Path) -> Path:
        """Write model and estimator to a folder; every command of `lexical-sae` takes it as a model.

        Args:
            folder: A new or empty folder, or one with a saved model, which is replaced.

        Returns:
            The folder.
        """
        model = self._fitted_model()
        params = self.get_params(deep=False)
        if not isinstance(params["random_state"], int | None):
            params["random_state"] = self.seed_
        params["encoder"] = str(params["encoder"])
        try:
            if isinstance(weights := params.get("class_weight"), dict):
                params["class_weight"] = [[json_value(label), float(weight)] for label, weight in weights.items()]
            content = {"estimator": type(self).__name__, "params": params, "seed": self.seed_, **self._to_keep()}
            text = json.dumps(content, default=json_value, indent=2)
        except TypeError as error:
            raise SettingsError(
                f"save writes JSON, which has no place for {error}; use labels that are strings or numbers, or pickle"
            ) from error
        return save_pretrained(model, folder, attached={ESTIMATOR_FILE: text + "\n", **self._attached()})

    @classmethod
    def load(cls: type[E], folder: str | Path) -> E:
        """The estimator in a folder that `save` wrote, or around the model of a run of `lexical-sae train`.

        Args:
            folder: A saved model, or the folder of a run.
        """
        place = Path(folder).expanduser()
        if not (place / CONFIG).is_file() and (place / MODEL / CONFIG).is_file():
            place = place / MODEL
        model = from_pretrained(place)
        described = place / ESTIMATOR_FILE
        kept = json.loads(described.read_text(encoding="utf-8")) if described.is_file() else {}
        if kept and kept["estimator"] != cls.__name__:
            raise SavedFileError(f"{place} holds a {kept['estimator']}, not a {cls.__name__}; load it with that class")
        params = dict(kept.get("params", {}))
        if isinstance(weights := params.get("class_weight"), list):
            params["class_weight"] = {label: weight for label, weight in weights}
        return cls(**params)._around(model, kept)

    @classmethod
    def from_model(cls: type[E], model: LexicalSAE) -> E:
        """A fitted estimator around a model that is there already."""
        return cls()._around(model, {})

    def _around(self: E, model: LexicalSAE, kept: Mapping[str, Any]) -> E:
        self.model_ = model.to(_device_here(self.device))
        self.seed_ = kept.get("seed", 0)
        self._take_back(kept)
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(vars(self))
        model = state.pop("model_", None)
        if model is not None:
            state["model_files"] = files_of(model)
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        plain = {name: value for name, value in state.items() if name != "model_files"}
        vars(self).update(plain)
        if "model_files" in state:
            self.model_ = model_of(state["model_files"]).to(_device_here(self.device))


def _positive(name: str, value: Any, kind: type = Real, wanted: str = "a positive number") -> Any:
    """The value of a parameter, if it is a number above zero; anything else is refused by the parameter's name."""
    if isinstance(value, bool) or not isinstance(value, kind) or not value > 0:
        raise SettingsError(f"{name} is {value!r}; give {wanted}, or None")
    return value


def files_of(model: LexicalSAE) -> dict[str, bytes]:
    """The files of a saved model, by name; on disk only while they are made."""
    with TemporaryDirectory() as work:
        folder = save_pretrained(model, Path(work) / MODEL)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def model_of(files: Mapping[str, bytes]) -> LexicalSAE:
    """The model that `files_of` made the files of; damaged ones are refused."""
    with TemporaryDirectory() as work:
        for name, content in files.items():
            # From a pickle: a name must not lead out of the folder.
            (Path(work) / Path(name).name).write_bytes(content)
        return from_pretrained(work)


def _device_here(name: str) -> Any:
    """The device of that name, or the CPU on a machine that does not have it."""
    try:
        return resolve_device(name)
    except ValueError:
        return resolve_device("cpu")


def json_value(value: Any) -> Any:
    """A numpy number as Python has it; anything else is refused."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str | int | float | bool | None):
        return value
    raise TypeError(f"{type(value).__name__} {value!r}")
