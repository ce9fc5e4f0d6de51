"""Two small models behind a service: a table of literal words, and one that classifies and tags."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from lexical_sae.models.persistence import save_pretrained
from lexical_sae.serve.app import build_app
from lexical_sae.serve.settings import Settings
from tests import tiny
from tests.literal import literal_model

ORIGIN = "http://localhost"
Client = Callable[..., AbstractContextManager[TestClient]]


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> dict[str, Path]:
    """The saved models, by name."""
    root = tmp_path_factory.mktemp("models")
    made = {"table": literal_model(), "both": tiny.model()}
    return {name: save_pretrained(model, root / name / "model") for name, model in made.items()}


@pytest.fixture(scope="session")
def client_with(folders, tmp_path_factory) -> Client:
    """A client of a service with these settings; by default of both models."""

    @contextmanager
    def made(*names: str, raise_server_exceptions: bool = False, **settings: Any) -> Iterator[TestClient]:
        models = tuple((name, folders[name]) for name in names or folders)
        app = build_app(Settings(models=models, spool=tmp_path_factory.mktemp("spool"), **settings))
        with TestClient(app, base_url=ORIGIN, raise_server_exceptions=raise_server_exceptions) as client:
            yield client

    return made


@pytest.fixture(scope="session")
def client(client_with) -> Iterator[TestClient]:
    """A client of a service with both models and no special settings."""
    with client_with() as made:
        yield made
