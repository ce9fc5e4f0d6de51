"""A running service: its models with their lanes, and how a request gets its answers from them."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lexical_sae.explanation import FORMAT
from lexical_sae.models.lexical_sae import CLASSIFY, TAG
from lexical_sae.serve.corpora import CorpusFile, Make
from lexical_sae.serve.decision_log import Decision, DecisionLog
from lexical_sae.serve.lanes import CLOSED, Lane, Question
from lexical_sae.serve.metrics import Metrics
from lexical_sae.serve.problems import IdentityBroken, Problem, QueueFull
from lexical_sae.serve.served import ServedModel
from lexical_sae.serve.settings import Batching, Settings
from lexical_sae.utils.errors import DamagedWeightsError, LexicalSAEError
from lexical_sae.utils.suggest import did_you_mean

ALONE = Batching(texts=1, wait_seconds=0.0)


@dataclass(eq=False)
class Post:
    """A model, the thread that answers quick questions, and one for searches, which would keep others waiting."""

    served: ServedModel
    quick: Lane
    slow: Lane
    corpus: CorpusFile | None

    @property
    def reference(self) -> dict[str, str]:
        """What answers name."""
        return {"name": self.served.name, "sha256": self.served.sha256}

    def described(self) -> dict[str, Any]:
        """What clients see of the model."""
        corpus = None if self.corpus is None else self.corpus.state()
        return {**self.served.described, "format": FORMAT, "ready": True, "corpus": corpus}

    def require(self, task: str) -> None:
        """Refuse questions that are about texts where the model only tags words, and the other way round."""
        if task not in self.served.tasks:
            does, can = {CLASSIFY: "classify texts", TAG: "tag words"}[task], ", ".join(self.served.tasks)
            raise Problem(422, f"The model {self.served.name!r} does not {does}; it can: {can}.")


class Service:
    """The models of a service, ready to answer."""

    def __init__(self, settings: Settings, make_corpus: Make | None = None) -> None:
        self.settings, self.limits, self.metrics = settings, settings.limits, Metrics()
        self.is_closing = False
        path = settings.decision_log
        self.log = None if path is None else DecisionLog(path, with_texts=settings.log_texts)
        self.posts = {name: self._post(ServedModel.load(name, folder), make_corpus) for name, folder in settings.models}

    def _post(self, served: ServedModel, make_corpus: Make | None) -> Post:
        self.metrics.info.labels(served.name, served.sha256).set(1)
        watch = partial(self.metrics.of_lane, served.name)
        waiting, batching, data = self.limits.waiting, self.settings.batching, self.settings.data
        quick = Lane(served.name, served, batching, waiting, watch)
        slow = Lane(f"{served.name} searches", served, ALONE, waiting)
        corpus = None
        if data is not None and make_corpus is not None and CLASSIFY in served.tasks:
            corpus = CorpusFile(served, data, self.settings.spool, make_corpus)
        return Post(served, quick, slow, corpus)

    def close(self) -> None:
        """Answer what was taken, and stop."""
        self.is_closing = True
        for post in self.posts.values():
            if post.corpus is not None:
                post.corpus.close()
            post.quick.close()
            post.slow.close()

    def post(self, name: str | None, *, status: int = 422) -> Post:
        """The model of a name, or the only one."""
        known = ", ".join(self.posts)
        if name is None:
            if len(self.posts) > 1:
                raise Problem(status, f"Say which model: this service has {known}.")
            return next(iter(self.posts.values()))
        if name not in self.posts:
            raise Problem(404, f"There is no model {name!r}{did_you_mean(name, self.posts)} This service has {known}.")
        return self.posts[name]

    async def ask(self, lane: Lane, question: Question, items: Sequence[Any]) -> list[Any]:
        """One answer per text, or a problem that says why there is none."""
        try:
            future = lane.ask(question, items)
            async with asyncio.timeout(self.limits.seconds):
                return await asyncio.wrap_future(future)
        except QueueFull as error:
            sentence = f"{self.limits.waiting} texts wait already; ask again in a moment."
            raise Problem(429, sentence, {"Retry-After": "1"}) from error
        except TimeoutError as error:
            sentence = f"There was no answer within {self.limits.seconds:g} seconds; ask about fewer or shorter texts."
            raise Problem(503, sentence, {"Retry-After": "5"}) from error
        except IdentityBroken as error:
            raise Problem(500, str(error)) from error
        except DamagedWeightsError as error:
            raise Problem(500, f"{error}.") from error
        except LexicalSAEError as error:
            raise Problem(422, f"{error}.") from error

    async def write_down(self, post: Post, request_id: str, asked: str, decisions: Sequence[Decision]) -> None:
        """Add decisions to the log, if there is one; an answer that cannot be logged is not sent."""
        if self.log is not None:
            served = post.served
            await asyncio.to_thread(self.log.add, served.name, served.sha256, request_id, asked, decisions)

    def require_open(self) -> None:
        """Refuse while shutting down."""
        if self.is_closing:
            raise Problem(503, CLOSED, {"Retry-After": "1"})


def answer_json(post: Post, request_id: str, **parts: str | Sequence[str]) -> bytes:
    """An answer from parts that are JSON already."""
    head = json.dumps({"model": post.reference, "format": FORMAT, "request_id": request_id})
    body = [f'"{key}": {part if isinstance(part, str) else _array(part)}' for key, part in parts.items()]
    return (head[:-1] + ", " + ", ".join(body) + "}").encode()


def _array(parts: Sequence[str]) -> str:
    return "[" + ", ".join(parts) + "]"
