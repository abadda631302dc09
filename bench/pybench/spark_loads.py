"""The loads of the suite `spark`: command lines of the Spark tools, and the data source rows of one session.

Must not know broker processes or the order of rounds. `pybench.spark_source` interleaves its own rounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pybench.peers.errors import PeerError
from pybench.scenario import Scenario
from pybroker.client import LoadGenerator, Producer

TOGETHER = "source-"
"""Prefix of loads that one session measures with its own rounds. The rest of the name is that of the row."""
_TIMEOUT_S = 3600
_DEFAULTS = {"batch.size": "1000000", "linger.ms": "5", "acks": "all", "max.request.size": "2000000"}
_OF_THE_ROW = frozenset({"master", "tasks", "partitions", "rate", "warm_up"})
"""Properties of a scenario that are not client properties."""

Words = Callable[[str, str, int, int, Mapping[str, Any]], list[str]]
"""Maps servers, topic, records, size and the scenario's properties to the command line of a tool."""


def produce_words(client: str) -> Words:
    """Return the command line of `spark-producer-perf` with this client."""

    def words(servers: str, topic: str, records: int, size: int, properties: Mapping[str, Any]) -> list[str]:
        return [*_produce(servers, topic, records, size, properties), "--throughput", "-1", "--client", client]

    return words


def scale_words(tasks: int) -> Words:
    """Return the command line of `spark-producer-perf` with this many tasks, each at the scenario's rate."""

    def words(servers: str, topic: str, records: int, size: int, properties: Mapping[str, Any]) -> list[str]:
        rate, given = int(properties["rate"]), {**properties, "tasks": tasks}
        return [*_produce(servers, topic, records * tasks, size, given), "--throughput", str(rate * tasks)]

    return words


def _produce(servers: str, topic: str, records: int, size: int, properties: Mapping[str, Any]) -> list[str]:
    own = {key: value for key, value in properties.items() if key not in _OF_THE_ROW}
    words = ["spark-producer-perf", "--topic", topic, "--num-records", str(records), "--record-size", str(size)]
    words += ["--bootstrap-server", servers, *_spark(properties), "--command-property"]
    return [*words, *(f"{key}={value}" for key, value in {**_DEFAULTS, **own}.items())]


def consume_words(servers: str, topic: str, records: int, _size: int, properties: Mapping[str, Any]) -> list[str]:
    """Return the command line of `spark-consumer-perf` for the whole topic."""
    words = ["spark-consumer-perf", "--topic", topic, "--num-records", str(records), "--bootstrap-server", servers]
    return [*words, *_spark(properties)]


def _spark(properties: Mapping[str, Any]) -> list[str]:
    return ["--master", str(properties["master"]), "--tasks", str(properties["tasks"])]


def fill_partitions(servers: str, topic: str, partitions: int, records: int, size: int) -> None:
    """Write `records` random values in full batches, evenly to the partitions."""
    with Producer(servers, {**_DEFAULTS, "linger.ms": "1000"}) as producer:
        load = LoadGenerator(producer)
        for partition in range(partitions):
            count = records // partitions + (partition < records % partitions)
            load.send_random_letters(topic, partition, size, count)


def measure_rows(scenario: Scenario, *, rounds: int, warm_up: int, records: int) -> dict[str, Any]:
    """Measure the rounds of every contestant in one run of `pybench.spark_source`. Raises PeerError."""
    rows = {contestant.name: contestant.load.removeprefix(TOGETHER) for contestant in scenario.contestants}
    words = [sys.executable, "-m", "pybench.spark_source", "--master", str(scenario.properties["master"])]
    words += ["--records", str(records), "--rounds", str(rounds), "--warm-up", str(warm_up)]
    words += [word for row in rows.values() for word in ("--only", row)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise PeerError(f"{' '.join(words[1:])} ended with status {done.returncode}: {done.stderr.strip()[-1500:]}")
    measured = json.loads(done.stdout)["rows"]
    command = " ".join(["python", *words[1:]])
    return {
        name: {
            "command": command,
            "rounds": [
                {"records": records, "bytes": records * scenario.size, "seconds": seconds}
                for seconds in measured[row]["seconds"]
            ],
        }
        for name, row in rows.items()
    }
