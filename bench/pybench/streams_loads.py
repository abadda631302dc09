"""The loads of the suite `streams`: one application against one broker, in pybroker.streams or in Kafka Streams.

Owns the topics of a round, the process of the application, and the check of its output. Must not know the order of
rounds or ratios.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow

from pybench.checkout import BENCH
from pybench.peers.errors import PeerError
from pybench.peers.java import streams_java_command
from pybench.process import peak_resident_bytes, proportional_bytes, resident_bytes
from pybench.streams_application import STORE, WINDOW_MS
from pybench.streams_rows import CHECKED, SPAN_MS, Input, Output, check_output, percentile
from pybroker.client import EARLIEST, LATEST, Admin, ColumnFetcher, NewTopic, Producer, TopicPartition

SIDES = ("pybroker", "columns", "kafka")
"""What a row compares: pybroker.streams with Python callables, with column expressions, and Kafka Streams."""
JVM = ("-Xmx1G", "-Djava.awt.headless=true")
"""Heap of Kafka Streams. Collector and compilers are those of the JVM."""
WARM_UP_RECORDS = 500_000
"""How many records the JVM processes before a counted application."""
_OF_THE_ROW = frozenset({"row", "records.per.key", "rate", "partitions"})
"""Properties of a scenario that are not settings of the application."""
_TIMEOUT_S = 600.0
_FILL_ROWS = 10_000
_FILL = {"batch.size": "1000000", "linger.ms": "100", "max.request.size": "2000000"}
_IDLE_S = 5.0
_numbers = itertools.count(1)


def input_of(records: int, size: int, properties: Mapping[str, Any]) -> Input:
    """Return the input of a scenario."""
    keys = max(1, records // int(properties.get("records.per.key", 1)))
    return Input(records, keys, size, is_table=properties["row"] == "restore")


def fill(servers: str, topic: str, records: int, size: int, properties: Mapping[str, Any]) -> None:
    """Write the records of a row to its topic: the input, or the changelog of the row `restore`."""
    given, row = input_of(records, size, properties), properties["row"]
    if row == "restore":
        topic = _changelog(topic)
        with Admin(servers) as admin:
            admin.create_topics([NewTopic(topic, 1, -1, {"cleanup.policy": "compact"})])
            admin.wait_for_leaders(topic)
    now_ms = int(time.time() * 1e3)
    # Windows of the first records are whole.
    begin_ms = (now_ms - SPAN_MS) // WINDOW_MS * WINDOW_MS
    types = (pyarrow.string(), pyarrow.binary(), pyarrow.timestamp("us"))
    with Producer(servers, _FILL) as producer:
        for keys, values, times in given.batches(begin_ms, _FILL_ROWS):
            columns = (keys, values, [at * 1000 for at in times])
            arrays = [pyarrow.array(column, of) for column, of in zip(columns, types, strict=True)]
            producer.send_columns(pyarrow.record_batch(arrays, ["key", "value", "timestamp"]), topic=topic)
        producer.flush()


def delete_topics(servers: str, topic: str) -> None:
    """Delete the topics of a row except its own."""
    with Admin(servers) as admin:
        found = [name for name in admin.list_topics() if name == _changelog(topic)]
        if found:
            admin.delete_topics(found)


def _application(topic: str) -> str:
    """Return the id of the application that all rounds of the row `restore` share."""
    return f"restore-{topic}"


def _changelog(topic: str) -> str:
    return f"{_application(topic)}-{STORE}-changelog"


def measure(
    side: str, servers: str, topic: str, records: int, size: int, properties: Mapping[str, Any]
) -> tuple[list[str], dict[str, float]]:
    """Run one round. Returns the command line, and the figures. Raises PeerError for a wrong output."""
    row = properties["row"]
    application = _application(topic) if row == "restore" else f"{side}-{row}-{next(_numbers)}"
    output = f"{application}-output"
    warms_up = side == "kafka" and row in CHECKED
    words = {
        "row": "count" if row == "idle" else f"{row}-columns" if side == "columns" else row,
        "input": topic,
        "output": output,
        "records": str(0 if row in ("map", "idle") else records),
        "warm.up": str(min(records, WARM_UP_RECORDS)) if warms_up else "0",
        "application.id": application,
        "bootstrap.servers": servers,
        **{key: str(value) for key, value in properties.items() if key not in _OF_THE_ROW},
    }
    shown = [*command(side), *(f"{key}={value}" for key, value in words.items())]
    with _topics(servers, application, output), tempfile.TemporaryDirectory(prefix="pybench-streams-") as directory:
        program = [*shown, f"state.dir={directory}"]
        if row == "map":
            figures = _latency(program, words, input_of(records, size, properties), int(properties["rate"]))
        elif row == "idle":
            figures = _idle(program)
        elif row == "restore":
            figures = _restore(program, records)
        else:
            figures = _throughput(program, words, input_of(records, size, properties))
    return shown, {"records": float(records), "bytes": float(records * size), **figures}


def command(side: str) -> list[str]:
    """Return the command line of the program of a side, before its arguments."""
    if side != "kafka":
        return [sys.executable, "-m", "pybench.streams_application"]
    return streams_java_command("StreamsPerf", BENCH / "jclient" / "streams", options=JVM)


@contextlib.contextmanager
def _topics(servers: str, application: str, output: str) -> Iterator[None]:
    """Create the output topics of a round. Delete them afterwards, and all topics that the application has created."""
    configs = {"message.timestamp.type": "LogAppendTime"}
    outputs = [output, f"{output}-warm-up"]
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(name, 1, -1, configs) for name in outputs])
        for name in outputs:
            admin.wait_for_leaders(name)
        kept = {_changelog(application.removeprefix("restore-"))}
        try:
            yield
        finally:
            admin.delete_topics([t for t in admin.list_topics() if t.startswith(application + "-") and t not in kept])


class _Program:
    """The process of an application."""

    def __init__(self, words: list[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `__exit__`
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        self._timer = threading.Timer(_TIMEOUT_S, self._process.kill)
        self._timer.start()
        self.pid = self._process.pid

    def __enter__(self) -> _Program:
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def event(self, name: str) -> dict[str, float]:
        """Wait for an event, and return its figures. Raises PeerError if the program prints anything else."""
        assert self._process.stdout is not None, "standard output is a pipe"
        line = self._process.stdout.readline()
        event = json.loads(line) if line else {}
        if event.pop("event", None) != name:
            self._errors.seek(0)
            reported = self._errors.read().decode(errors="replace").strip()[-1500:]
            raise PeerError(f"the application printed {line!r}, expected the event {name}: {reported}")
        return {key: float(value) for key, value in event.items()}

    def close_input(self) -> None:
        """Close standard input, which ends the program or the application in it."""
        assert self._process.stdin is not None, "standard input is a pipe"
        self._process.stdin.close()
        self._process.stdin = None


def _throughput(program: list[str], words: Mapping[str, str], given: Input) -> dict[str, float]:
    with _Program(program) as running:
        figures = running.event("done")
        figures["application_peak_bytes"] = float(peak_resident_bytes(running.pid))
    output, last_ms = read_output(words["bootstrap.servers"], words["output"])
    if difference := check_output(words["row"], given, output):
        raise PeerError(difference)
    return {**figures, "seconds": (last_ms - figures["begun_ms"]) / 1e3, "output_records": float(output.rows)}


def _restore(program: list[str], records: int) -> dict[str, float]:
    with _Program(program) as running:
        figures = running.event("done")
        figures["application_peak_bytes"] = float(peak_resident_bytes(running.pid))
    samples = len(range(0, records, max(1, records // 1000)))
    if (figures["restored"], figures["found"]) != (records, samples):
        raise PeerError(f"the store restored {figures}, expected {records} records and {samples} samples")
    return figures


def _idle(program: list[str]) -> dict[str, float]:
    with _Program(program) as running:
        running.event("running")
        time.sleep(_IDLE_S)
        resident, proportional = resident_bytes(running.pid), proportional_bytes(running.pid)
        running.close_input()
        running.event("done")
    return {"application_rss_bytes": float(resident), "application_pss_bytes": float(proportional), "seconds": _IDLE_S}


def read_output(servers: str, topic: str) -> tuple[Output, int]:
    """Return all committed records of a topic of one partition, and the largest timestamp in milliseconds."""
    partition, rows, last_ms = TopicPartition(topic, 0), 0, 0
    last = dict[bytes, bytes]()
    with Admin(servers) as admin:
        end = admin.list_offsets({partition: LATEST})[partition].offset
    with ColumnFetcher(servers, {"isolation.level": "read_committed"}) as fetcher:
        fetcher.assign({partition: EARLIEST})
        deadline = time.monotonic() + _TIMEOUT_S
        while fetcher.positions()[partition] < end and time.monotonic() < deadline:
            taken = fetcher.take(1.0, columns=["key", "value", "timestamp"], end=end)
            if taken is None or not len(taken):
                continue
            batch = pyarrow.record_batch(taken)
            rows += batch.num_rows
            last.update(zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True))
            last_ms = max(last_ms, max(batch["timestamp"].cast(pyarrow.int64()).to_pylist()) // 1000)
    return Output(rows, last), last_ms


def _latency(program: list[str], words: Mapping[str, str], given: Input, rate: int) -> dict[str, float]:
    """Send records on an open-loop schedule, and measure from when each is due until its output is received."""
    arrived = dict[int, float]()
    with _Program(program) as running:
        running.event("running")
        reader = threading.Thread(target=_receive, args=(words["bootstrap.servers"], words["output"], given, arrived))
        reader.start()
        with Producer(words["bootstrap.servers"], {"linger.ms": "0"}) as producer:
            producer.partitions(words["input"])
            begun = time.monotonic() + 0.1
            for number in range(given.records):
                time.sleep(max(0.0, begun + number / rate - time.monotonic()))
                producer.send(words["input"], given.value(number), given.key(number).encode())
        reader.join()
        running.close_input()
        running.event("done")
    if len(arrived) != given.records or min(arrived.values()) < begun:
        raise PeerError(f"{len(arrived)} records arrived, expected {given.records}, each after it was sent")
    # The first quarter warms up the JVM.
    waits = [(arrived[n] - begun - n / rate) * 1e3 for n in range(given.records // 4, given.records)]
    return {"p50_ms": percentile(waits, 50), "p99_ms": percentile(waits, 99), "seconds": given.records / rate}


def _receive(servers: str, topic: str, given: Input, arrived: dict[int, float]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    with ColumnFetcher(servers) as fetcher:
        fetcher.assign({TopicPartition(topic, 0): EARLIEST})
        while len(arrived) < given.records and time.monotonic() < deadline:
            taken = fetcher.take(1.0, columns=["value"])
            now = time.monotonic()
            if taken is not None and len(taken):
                for value in pyarrow.record_batch(taken)["value"].to_pylist():
                    arrived[json.loads(value)["id"]] = now
