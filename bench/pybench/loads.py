"""The loads: one round of one client against one broker, as a command whose output contains the figures.

Owns the command lines, which the report prints with the figures. Knows neither the order of rounds nor ratios.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pybench import console_loads, streams_loads
from pybench.checkout import BENCH, ROOT, build_directory
from pybench.client_loads import LOADS as CLIENT_LOADS
from pybench.peers.c_program import build_c_program
from pybench.peers.errors import ArtefactError, PeerError
from pybench.peers.java import build_client, java_command
from pybench.spark_loads import Words, consume_words, produce_words, scale_words
from pybench.wheel import measure_wheel

TIMEOUT_S = 600


class LoadError(PeerError):
    """A load failed. The message contains the command and its output."""


@dataclass(frozen=True, slots=True)
class Task:
    """The parameters of one round."""

    bootstrap_servers: str
    topic: str
    records: int
    size: int
    properties: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one round: `seconds`, `records`, `bytes`, and further figures of the load."""

    command: str
    figures: dict[str, float]


def run_load(name: str, task: Task) -> Outcome:
    """Run one round. Raises LoadError, MissingToolError or ArtefactError."""
    return LOADS[name](task)


def plain_write(directory: Path, records: int, size: int) -> Outcome:
    """Write the same number of bytes with `write()` to a new file in `directory`."""
    words = [str(build_c_program()), "write", "-d", str(directory), "-n", str(records), "-s", str(size)]
    return _c_outcome(words, records * size)


def _run(words: list[str], *, shown: list[str] | None = None, directory: Path | None = None) -> str:
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-1500:]
        raise LoadError(f"{shlex.join(shown or words)} ended with status {done.returncode}: {said}")
    return done.stdout


def _show(words: list[str]) -> str:
    """Return a command for the report, without this machine's directories and the Java class path."""
    shown = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word == "-cp":
            skip = True
        elif word.startswith("ssl.ca.location="):
            shown.append("ssl.ca.location=authority.pem")
        elif not word.startswith(("-Xm", "-D")):
            shown.append(Path(word).name if word.startswith("/") else word)
    return shlex.join(shown)


def _c_outcome(words: list[str], size: int) -> Outcome:
    document = json.loads(_run(words))
    figures = {key: value for key, value in document.items() if isinstance(value, int | float) and key != "size"}
    figures.setdefault("bytes", size)
    return Outcome(_show(words), figures)


def _c_words(load: str, task: Task) -> list[str]:
    words = [str(build_c_program()), load, "-b", task.bootstrap_servers, "-t", task.topic, "-n", str(task.records)]
    if task.size:
        words += ["-s", str(task.size)]
    for key, value in task.properties.items():
        words += ["-r", str(value)] if key == "rate" else ["-X", f"{key}={value}"]
    return words


def _c_load(load: str) -> Callable[[Task], Outcome]:
    return lambda task: _c_outcome(_c_words(load, task), task.records * task.size)


def _c_copy(task: Task) -> Outcome:
    # Touch the memory for source and target before the copy is timed.
    plain_write(Path(task.topic), 2 * task.records, int(task.properties["record_bytes"]))
    size = ["-n", str(task.records), "-s", str(task.properties["record_bytes"])]
    outcome = _c_outcome([str(build_c_program()), "copy", "-d", task.topic, *size], 0)
    moved = float(task.records * int(task.properties["record_bytes"]))
    return Outcome(
        outcome.command, outcome.figures | {"bytes": moved, "bytes_per_second": moved / outcome.figures["seconds"]}
    )


def _c_consume_live(task: Task) -> Outcome:
    """Consume existing records while a producer appends to the same partition."""
    # linger.ms makes larger batches, so that the producer leaves the CPU to the consumer.
    steady = replace(task, records=2**31, size=100, properties={**task.properties, "linger.ms": 5})
    with subprocess.Popen(_c_words("steady", steady), stdout=subprocess.DEVNULL) as producer:
        try:
            return _c_load("consume")(replace(task, properties={}))
        finally:
            producer.terminate()


def _c_connections(task: Task) -> Outcome:
    words = [str(build_c_program()), "connections", "-b", task.bootstrap_servers, "-n", str(task.records), "-c", "8"]
    return _c_outcome(words, 0)


def _c_by_connection(load: str) -> Callable[[Task], Outcome]:
    """A load of connections that each do one operation, several at a time."""

    def run(task: Task) -> Outcome:
        words = [str(build_c_program()), load, "-b", task.bootstrap_servers, "-n", str(task.records), "-c", "8"]
        for key, value in task.properties.items():
            words += ["-X", f"{key}={value}"]
        return _c_outcome(words, 0)

    return run


def _c_seal(task: Task) -> Outcome:
    words = [str(build_c_program()), "seal", "-n", str(task.records), "-s", str(task.size)]
    outcome = _c_outcome(words, task.records * task.size)
    # The minimum cost of a broker: the CPU time of this client, under the names of the broker's figures.
    cost = {f"broker_{what}_s": outcome.figures[f"client_{what}_s"] for what in ("user", "system")}
    return Outcome(outcome.command, outcome.figures | cost)


def _c_commit(task: Task) -> Outcome:
    words = [str(build_c_program()), "commit", "-b", task.bootstrap_servers, "-t", task.topic]
    words += ["-n", str(task.records), "-c", str(task.properties["clients"])]
    return _c_outcome(words, 0)


_OPTIONS_OF_TRANSACTIONS = {"each": "-e", "producers": "-c", "partitions": "-P", "aborted.percent": "-a"}


def _c_transactions(task: Task) -> Outcome:
    words = [str(build_c_program()), "transactions", "-b", task.bootstrap_servers, "-t", task.topic]
    words += ["-n", str(task.records), "-s", str(task.size)]
    for name, option in _OPTIONS_OF_TRANSACTIONS.items():
        if name in task.properties or name == "producers":
            words += [option, str(task.properties.get(name, 1))]
    return _c_outcome(words, task.records * task.size)


def _c_ends(task: Task) -> Outcome:
    words = [str(build_c_program()), "ends", "-b", task.bootstrap_servers, "-t", task.topic]
    words += ["-n", str(task.records), "-s", str(task.size)]
    return _c_outcome(words, task.records * task.size)


def _c_read(isolation_level: str) -> Callable[[Task], Outcome]:
    """Consume a topic with transactions. Aborted records also count, although read_committed consumers skip them."""

    def run(task: Task) -> Outcome:
        each, percent = (int(task.properties.get(name, 0)) for name in ("each", "aborted.percent"))
        aborted = task.records // each * percent // 100 * each if isolation_level == "read_committed" else 0
        read = replace(task, records=task.records - aborted, size=0, properties={"isolation.level": isolation_level})
        outcome = _c_outcome(_c_words("consume", read), 0)
        passed = {"records": float(task.records), "bytes": float(task.records * task.size)}
        return Outcome(outcome.command, outcome.figures | passed)

    return run


def _group_load(load: str) -> Callable[[Task], Outcome]:
    def run(task: Task) -> Outcome:
        words = [sys.executable, "-m", "pybench.group_loads", load, task.bootstrap_servers, task.topic]
        words += [str(task.records), *(f"{key}={value}" for key, value in task.properties.items())]
        document = json.loads(_run(words))
        return Outcome(_show(words), {key: float(value) for key, value in document.items()})

    return run


_SUMMARY = re.compile(
    r"^(\d+) records sent, ([\d.]+) records/sec .*?([\d.]+) ms avg latency, .* (\d+) ms 50th, .* (\d+) ms 99th", re.M
)


def _java_produce(task: Task) -> Outcome:
    arguments = ["--topic", task.topic, "--num-records", str(task.records), "--record-size", str(task.size)]
    arguments += ["--throughput", "-1", "--bootstrap-server", task.bootstrap_servers]
    if task.properties:
        arguments += ["--command-property", *(f"{key}={value}" for key, value in task.properties.items())]
    words = [*java_command("producer-perf"), *arguments]
    found = _SUMMARY.search(said := _run(words))
    if found is None:
        raise LoadError(f"{_show(words)} printed no summary: {said.strip()[-500:]}")
    records, rate = int(found[1]), float(found[2])
    if records != task.records:
        raise LoadError(f"{_show(words)} sent {records} of {task.records} records")
    figures = {
        "records": records,
        "bytes": records * task.size,
        "seconds": records / rate,
        "latency_avg_ms": float(found[3]),
        "latency_p50_ms": float(found[4]),
        "latency_p99_ms": float(found[5]),
    }
    return Outcome(shlex.join(["kafka-producer-perf-test.sh", *arguments]), figures)


def _java_consume(task: Task) -> Outcome:
    name = build_client("AssignedConsumerPerf")
    pairs = [f"{key}={value}" for key, value in task.properties.items()]
    words = [*java_command(name), task.bootstrap_servers, task.topic, str(task.records), *pairs]
    figures = {k: v for k, v in json.loads(_run(words)).items() if isinstance(v, int | float)}
    return Outcome(_show(words), figures)


def _pybench(words: list[str]) -> Outcome:
    """Run a pybench tool in a process of its own, and measure its CPU time."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [str(Path(sys.executable).with_name("pybench")), *words]
        before = _children_cpu()
        _run([*command, "--json", out.name], shown=command)
        user, system = (after - earlier for after, earlier in zip(_children_cpu(), before, strict=True))
        document = json.load(out)
    figures = {"records": document["records"], "bytes": document["bytes"]}
    figures["seconds"] = document.get("fetch_seconds", document["seconds"])
    return Outcome(_show(command), figures | {"client_user_s": user, "client_system_s": system})


def _children_cpu() -> tuple[float, float]:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime, used.ru_stime


def _pybench_produce(task: Task) -> Outcome:
    defaults = {"batch.size": "1000000", "linger.ms": "5", "acks": "all", "max.request.size": "2000000"}
    pairs = [f"{key}={value}" for key, value in {**defaults, **task.properties}.items()]
    words = [
        "producer-perf",
        "--topic",
        task.topic,
        "--num-records",
        str(task.records),
        "--record-size",
        str(task.size),
    ]
    words += ["--throughput", "-1", "--bootstrap-server", task.bootstrap_servers, "--command-property", *pairs]
    return _pybench(words)


def _pybench_consume(task: Task) -> Outcome:
    words = ["consumer-perf", "--topic", task.topic, "--num-records", str(task.records)]
    words += ["--bootstrap-server", task.bootstrap_servers]
    return _pybench(words)


def _client(load: str) -> Callable[[Task], Outcome]:
    """Run a load of a Python client, pybroker's or another, in a process of its own."""

    def run(task: Task) -> Outcome:
        words = [sys.executable, "-m", "pybench.client_loads", load, task.bootstrap_servers, task.topic]
        words += [str(task.records), str(task.size)]
        before = _children_cpu()
        document = json.loads(_run(words))
        user, system = (after - earlier for after, earlier in zip(_children_cpu(), before, strict=True))
        figures = {key: float(value) for key, value in document.items()}
        return Outcome(_show(words), figures | {"client_user_s": user, "client_system_s": system})

    return run


def _console_consume(program: str) -> Callable[[Task], Outcome]:
    """A load of a console command that prints a topic."""

    def run(task: Task) -> Outcome:
        words = console_loads.consume_words(program, task.bootstrap_servers, task.topic, task.records)
        return _timed(words, task, console_loads.run_timed(words))

    return run


def _console_produce(program: str) -> Callable[[Task], Outcome]:
    """A load of a console command that sends the lines of a file."""

    def run(task: Task) -> Outcome:
        words = console_loads.produce_words(program, task.bootstrap_servers, task.topic)
        return _timed(words, task, console_loads.run_timed(words, console_loads.lines(task.records, task.size)))

    return run


def _timed(words: list[str], task: Task, timed: console_loads.Timed) -> Outcome:
    figures = {"records": float(task.records), "bytes": float(task.records * task.size), "seconds": timed.seconds}
    return Outcome(_show(words), figures | {"client_user_s": timed.user_s, "client_system_s": timed.system_s})


def _spark_load(words: Words) -> Callable[[Task], Outcome]:
    return lambda task: _pybench(words(task.bootstrap_servers, task.topic, task.records, task.size, task.properties))


def _streams_load(side: str) -> Callable[[Task], Outcome]:
    """A load of an application of pybroker.streams or of Kafka Streams."""

    def run(task: Task) -> Outcome:
        words, figures = streams_loads.measure(
            side, task.bootstrap_servers, task.topic, task.records, task.size, task.properties
        )
        return Outcome(_show(words), figures)

    return run


def _native(what: str, *numbers: str) -> Callable[[Task], Outcome]:
    """A load of logs without a broker: the native core's program `storage`. `topic` is its working directory.

    `numbers` are its arguments: numbers, `records`, `size`, or names of the scenario's properties.
    """

    def load(task: Task) -> Outcome:
        known = {"records": task.records, "size": task.size, **task.properties}
        words = [
            str(_bench_program("storage")),
            what,
            task.topic,
            *(str(known.get(number, number)) for number in numbers),
        ]
        document = json.loads(_run(words))
        return Outcome(_show(words), {k: v for k, v in document.items() if isinstance(v, int | float)})

    return load


def _codec_load(peer: str) -> Callable[[Task], Outcome]:
    """A load of one library's batches with one codec, by the micro benchmarks' program outside this package."""

    def load(task: Task) -> Outcome:
        words = [sys.executable, "-m", "micro.codec_rounds", peer, str(task.properties["codec"]), str(task.records)]
        return Outcome(_show(words), json.loads(_run(words, directory=BENCH)))

    return load


def _decisions(task: Task) -> Outcome:
    """Measure an authorizer's decisions in the data plane. The scenario sets the numbers of principals and topics."""
    numbers = (str(task.properties[name]) for name in ("principals", "topics", "room"))
    words = [str(_bench_program("decisions")), *numbers]
    document = json.loads(_run(words))
    return Outcome(_show(words), {k: v for k, v in document.items() if isinstance(v, int | float)})


def _bench_program(name: str) -> Path:
    """Build an example of the native core's benchmarks if it is out of date. Raises ArtefactError."""
    package = ["--package", "pybroker-bench", "--example", name]
    built = subprocess.run(
        ["cargo", "build", "--quiet", "--release", *package], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        raise ArtefactError(f"cargo could not build the example {name}: {built.stderr.strip()[-1500:]}")
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT, capture_output=True, check=True
    )
    return Path(json.loads(metadata.stdout)["target_directory"]) / "release" / "examples" / name


LOADS: dict[str, Callable[[Task], Outcome]] = {
    **{f"client-{name}": _client(name) for name in CLIENT_LOADS},
    "c-commit": _c_commit,
    "c-ends": _c_ends,
    "c-connections": _c_connections,
    "c-consume": _c_load("consume"),
    "c-consume-live": _c_consume_live,
    "c-copy": _c_copy,
    "c-handshakes": _c_by_connection("handshakes"),
    "c-logins": _c_by_connection("logins"),
    "c-produce": _c_load("produce"),
    "c-read-committed": _c_read("read_committed"),
    "c-read-uncommitted": _c_read("read_uncommitted"),
    "c-roundtrip": _c_load("roundtrip"),
    "c-seal": _c_seal,
    "c-transactions": _c_transactions,
    "codec-aiokafka": _codec_load("aiokafka"),
    "codec-kafka-python": _codec_load("kafka_python"),
    "codec-native": _codec_load("native"),
    **{f"console-consume-{program}": _console_consume(program) for program in ("pybroker", "kcat")},
    **{f"console-produce-{program}": _console_produce(program) for program in ("pybroker", "kcat")},
    "decisions": _decisions,
    "group-join": _group_load("join"),
    "group-rebalance": _group_load("rebalance"),
    "java-consume": _java_consume,
    "java-produce": _java_produce,
    "native-append": _native("append", "records", "size", "batch.bytes"),
    "native-append-behind-1-gib": _native("behind", "records", "size", "1"),
    "native-append-behind-50-gib": _native("behind", "records", "size", "50"),
    "native-compact": _native("compact", "records", "size", "keys", "map.bytes"),
    "native-flush-each": _native("flush", "records", "size", "writers", "2"),
    "native-flush-group": _native("flush", "records", "size", "writers", "1"),
    "native-flush-none": _native("flush", "records", "size", "writers", "0"),
    "native-open": _native("open", "records", "threads"),
    "native-plan": _native("plan", "segments", "batches", "records"),
    "native-recover": _native("recover", "bytes", "batch.bytes"),
    "native-write": _native("write", "records", "size", "batch.bytes"),
    "pybench-consume": _pybench_consume,
    "pybench-produce": _pybench_produce,
    "spark-consume": _spark_load(consume_words),
    "spark-produce": _spark_load(produce_words("pybroker")),
    "spark-produce-confluent": _spark_load(produce_words("confluent-kafka")),
    **{f"spark-scale-{tasks}": _spark_load(scale_words(tasks)) for tasks in (1, 2, 4, 8)},
    **{f"streams-{side}": _streams_load(side) for side in streams_loads.SIDES},
    "wheel": lambda _task: Outcome(*measure_wheel()),
}
"""Loads by the names that scenarios use. Those that start their own broker are in `turns.OWN_BROKER`."""


def prepare(names: set[str]) -> None:
    """Build the programs of these loads before the first round. Raises MissingToolError or ArtefactError."""
    build_directory().mkdir(parents=True, exist_ok=True)
    build_c_program()
    if any(name.startswith("native-") for name in names):
        _bench_program("storage")
    if "decisions" in names:
        _bench_program("decisions")
    if "java-consume" in names:
        build_client("AssignedConsumerPerf")
    if "streams-kafka" in names:
        streams_loads.command("kafka")
    if "java-produce" in names:
        java_command("producer-perf")
