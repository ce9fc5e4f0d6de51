"""Several workers on one socket: one is killed under load, and another takes its place."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.serve.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux")]
SERVE = [sys.executable, "-m", "lexical_sae.cli", "serve"]
TEXT = {"texts": ["a good film"]}


def children(parent: int) -> list[int]:
    """The workers of a service: its child processes that were started with a pipe to their parent."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(one) for one in listed if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


@pytest.fixture
def service(folders):
    """A process with two workers, and its address."""
    command = [
        sys.executable,
        "-m",
        "lexical_sae.cli",
        "serve",
        f"m={folders['table']}",
        "--port",
        "0",
        "--workers",
        "2",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    line = process.stdout.readline()
    address = next(word for word in line.split() if word.startswith("http://"))
    yield process, address
    if process.poll() is None:
        process.kill()
    process.wait(10)


def is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}ready", timeout=5).is_success
    except httpx.TransportError:
        return False


def test_a_killed_worker_is_replaced_while_the_other_answers(service):
    process, address = service
    wait_until(lambda: is_ready(address), 120)
    wait_until(lambda: len(children(process.pid)) == 2)
    first = children(process.pid)
    done, statuses, broken = threading.Event(), [], []

    def load():
        while not done.is_set():
            try:
                with httpx.Client(base_url=address, timeout=30) as client:
                    statuses.append(client.post("/v1/explain", json=TEXT).status_code)
            except httpx.TransportError as error:
                broken.append(error)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(statuses) > 20, 60)
    os.kill(first[0], signal.SIGKILL)
    at_kill = len(statuses)
    wait_until(lambda: len(statuses) > at_kill + 20, 60)
    wait_until(lambda: len(children(process.pid)) == 2 and first[0] not in children(process.pid), 60)
    done.set()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200}
    # Only requests that the killed worker was answering can break: at most one per client.
    assert len(broken) <= len(threads)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_workers_count_together_and_stop_together(service):
    process, address = service
    wait_until(lambda: is_ready(address), 120)
    for _ in range(10):
        assert httpx.post(f"{address}v1/explain", json=TEXT, timeout=30).is_success
    assert 'lexical_sae_requests_total{route="/v1/explain",status="200"} 10.0' in httpx.get(f"{address}metrics").text
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_a_model_that_no_worker_can_load_ends_the_service(folders, tmp_path):
    broken = tmp_path / "model"
    broken.mkdir()
    for file in folders["table"].iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    (broken / "model.safetensors").write_bytes(b"nothing")
    command = [*SERVE, f"m={broken}", "--port", "0", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "is not the file that was saved" in done.stderr
    assert "a worker could not start" in done.stderr
