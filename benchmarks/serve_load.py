"""Load on the service, on loopback: `python -m benchmarks.serve_load MODEL`.

1. A 20-word text: round trips of one client beside the library's own `explain`, in turns; on the clock, and in the
   processor time of the service, which holds on a busy machine too: there a round trip waits for its turn four times.
2. Requests per second of 1 to 16 clients, with micro-batching and without, each in a service of its own.
3. Memory of the service over many requests.

Clients are processes of their own, each with one connection that asks again as soon as it has its answer. Rounds last a
few seconds and are bounded in number. On a machine with few cores the clients take their share of them, so that figures
are a lower bound.
"""

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

SENTENCE = "a warm and funny film that never drags although the plot is thin and some of the acting is flat"
WORDS = SENTENCE.split()
ONE_AT_A_TIME = ("--batch", "1", "--wait", "0")


def text_of(number: int) -> str:
    """A text of twenty words, another for each number."""
    shift = number % len(WORDS)
    return " ".join(WORDS[shift:] + WORDS[:shift])


@contextlib.contextmanager
def service(model: str, *options: str) -> Iterator[tuple[int, str]]:
    """A service of its own, as its process and its address."""
    command = [sys.executable, "-m", "lexical_sae.cli", "serve", f"m={model}", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield process.pid, next(word for word in line.split() if word.startswith("http://"))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


class Client:
    """One connection."""

    def __init__(self, address: str) -> None:
        place = urlsplit(address)
        assert place.hostname == "127.0.0.1"
        self.connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)

    def explain(self, text: str) -> int:
        """The status of one request."""
        body = json.dumps({"texts": [text]})
        self.connection.request("POST", "/v1/explain", body, {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        response.read()
        return response.status


def client_process(address: str, first: int, until: float, most: int, results: "multiprocessing.Queue") -> None:
    """Ask until a time or a number of requests; put statuses and times into the queue."""
    client, times, statuses = Client(address), [], []
    while time.time() < until and len(times) < most:
        started = time.perf_counter()
        statuses.append(client.explain(text_of(first + len(times))))
        times.append(time.perf_counter() - started)
    results.put((times, {status: statuses.count(status) for status in set(statuses)}))


def load(address: str, clients: int, seconds: float, most: int) -> tuple[float, list[float], dict[int, int]]:
    """Requests per second, times, and statuses of several clients at once."""
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue = context.Queue()
    started = time.time()
    jobs = [
        context.Process(target=client_process, args=(address, 7 * i, started + seconds, most, results))
        for i in range(clients)
    ]
    for job in jobs:
        job.start()
    found = [results.get(timeout=seconds + 120) for _ in jobs]
    for job in jobs:
        job.join()
    times = [taken for own, _ in found for taken in own]
    statuses: dict[int, int] = {}
    for _, own in found:
        for status, count in own.items():
            statuses[status] = statuses.get(status, 0) + count
    return len(times) / (time.time() - started), times, statuses


def resident_mb(process: int) -> float:
    """Memory that the process has for itself."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    return (found["Private_Dirty"] + found["Private_Clean"]) / 1024


def processor_ms(process: int) -> float:
    """Processor time that a process has had, all its threads together."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def compare_with_library(model: str, repeats: int) -> None:
    """Round trips of one client and the library's own calls, in turns."""
    import torch

    from lexical_sae.inference import explain
    from lexical_sae.models.persistence import from_pretrained

    torch.set_num_threads(1)
    loaded = from_pretrained(model)
    own, asked, library_ms, before = [], [], 0.0, 0.0
    with service(model, "--threads", "1") as (process, address):
        client = Client(address)
        for number in range(20 + repeats):
            text = text_of(number)
            if number == 20:
                library_ms, before = 0.0, processor_ms(process)
            started, worked = time.perf_counter(), time.process_time()
            explain(loaded, text).to_json()
            library_ms += 1000 * (time.process_time() - worked)
            between = time.perf_counter()
            assert client.explain(text) == 200
            if number >= 20:
                own.append(between - started)
                asked.append(time.perf_counter() - between)
        service_ms = processor_ms(process) - before
    ratio = median(asked) / median(own)
    print(
        f"explain, 20 words, one thread: library {1000 * median(own):.2f} ms, round trip {1000 * median(asked):.2f} ms "
        f"(medians of {repeats}, in turns): {ratio:.2f} times"
    )
    print(
        f"processor time of one: library {library_ms / repeats:.2f} ms, service {service_ms / repeats:.2f} ms: "
        f"{service_ms / library_ms:.2f} times",
        flush=True,
    )


def compare_batching(model: str, clients: list[int], seconds: float, threads: str) -> None:
    """Requests per second with and without micro-batching."""
    rates: dict[tuple[str, int], float] = {}
    for name, options in (("one at a time", ONE_AT_A_TIME), ("batched", ())):
        with service(model, "--threads", threads, *options) as (_, address):
            load(address, 1, 2.0, 50)
            for count in clients:
                rate, times, statuses = load(address, count, seconds, 100_000)
                times.sort()
                p50, p99 = (1000 * times[int(share * (len(times) - 1))] for share in (0.5, 0.99))
                rates[name, count] = rate
                spread = f"median {p50:.1f} ms, 99 % {p99:.1f} ms"
                print(f"{name}, {count} clients: {rate:.1f} requests/s, {spread}, {statuses}", flush=True)
    for count in clients:
        print(f"{count} clients: {rates['batched', count] / rates['one at a time', count]:.2f} times")


def watch_memory(model: str, requests: int, threads: str) -> None:
    """Private memory of the service while it answers many requests."""
    with service(model, "--threads", threads) as (process, address):
        load(address, 16, 60.0, 50)
        done, before = 16 * 50, resident_mb(process)
        print(f"after {done} requests: {before:.0f} MB private")
        while done < requests:
            _, times, statuses = load(address, 16, 600.0, min(250, (requests - done) // 16 + 1))
            done += len(times)
            assert set(statuses) == {200}, statuses
            print(f"after {done} requests: {resident_mb(process):.0f} MB private", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of a saved model")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each round")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--threads", default="1", help="of the service's arithmetic")
    parser.add_argument("--requests", type=int, default=0, help="watch memory over so many, e.g. 20000")
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", asked.threads)
    compare_with_library(asked.model, asked.repeats)
    compare_batching(asked.model, asked.clients, asked.seconds, asked.threads)
    if asked.requests:
        watch_memory(asked.model, asked.requests, asked.threads)


if __name__ == "__main__":
    main()
