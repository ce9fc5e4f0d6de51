"""Counts and times for Prometheus; with several workers, of all of them together."""

import os
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The library's own switch: set before it is imported, it keeps its numbers in files that all workers read."""
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
TEXTS = (1, 2, 4, 8, 16, 32, 64)


def share_between_workers(spool: Path) -> None:
    """Have the workers that are started from here on count together."""
    folder = spool / "metrics"
    folder.mkdir(exist_ok=True)
    os.environ[SHARED] = str(folder)


class Metrics:
    """What is counted. No label holds anything that a client wrote."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        own = {"registry": self._registry, "namespace": "lexical_sae"}
        self.requests = Counter("requests", "Requests.", ("route", "status"), **own)
        self.seconds = Histogram("request_seconds", "Time to answer.", ("route",), buckets=SECONDS, **own)
        self.texts = Counter("texts", "Texts read.", ("model",), **own)
        self.batch_texts = Histogram("batch_texts", "Texts in a batch.", ("model",), buckets=TEXTS, **own)
        self.waiting = Histogram(
            "waiting_seconds", "Time from a question to its batch.", ("model",), buckets=SECONDS, **own
        )
        self.info = Gauge("model_info", "Models.", ("model", "sha256"), multiprocess_mode="max", **own)

    def of_lane(self, model: str, _questions: int, texts: int, waited: float) -> None:
        """Count a batch."""
        self.texts.labels(model).inc(texts)
        self.batch_texts.labels(model).observe(texts)
        self.waiting.labels(model).observe(waited)

    def written(self) -> bytes:
        """The numbers in Prometheus's format."""
        if SHARED not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
