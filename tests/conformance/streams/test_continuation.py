"""An application that is stopped is continued by the other language, with the state of every type of store.

The expected records are those of Kafka's test driver, which processes both halves of the inputs without a stop.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import Server, serving
from tests.support import streams_oracle
from tests.support.java_oracle import JavaOracle
from tests.support.streams_application import (
    Application,
    JavaApplication,
    PythonApplication,
    await_commits,
    create_topics,
    read,
    send,
    with_topics,
)
from tests.support.streams_inputs import random_inputs, topics_of
from tests.support.streams_steps import Step
from tests.support.streams_topologies import AGGREGATIONS, JOINS, SUPPRESSED, TABLES, WINDOWED

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("stream applications")]

NAMES = (
    "table_versioned",
    "count_stored",
    "count_group_by",
    "aggregate_versioned",
    "table_aggregate_stored",
    "tumbling_count",
    "hopping_reduce",
    "sliding_aggregate_stored",
    "session_aggregate_stored",
    "suppress_time",
    "session_suppressed",
    "stream_join_stored",
    "stream_outer_join",
    "stream_table_left_join",
    "stream_table_left_join_grace",
    "table_outer_join_stored",
    "foreign_left_join_stored",
)
TOPOLOGIES = {**TABLES, **AGGREGATIONS, **WINDOWED, **SUPPRESSED, **JOINS}
BROKER = {
    "log.initial.task.delay.ms": str(24 * 60 * 60 * 1000),
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "100",
    "group.streams.assignment.interval.ms": "0",
}


def _last_values(records: list[dict[str, Any]]) -> dict[str, Any]:
    return {record["key"]: record["value"] for record in records}


def _in_any_order(records: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps([record[field] for field in ("key", "value", "timestamp")]) for record in records)


COMPARED: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    # Responses of a foreign-key join that a later update overtakes are dropped, and the driver has no such races.
    "foreign_left_join_stored": _last_values,
    # A restart forgets when the next unmatched records are due, so that another record forwards them, with its headers.
    "stream_outer_join": _in_any_order,
}


@pytest.fixture(scope="module")
def brokers() -> Iterator[Server]:
    with serving(BROKER) as server:
        yield server


@pytest.fixture(scope="module")
def driver() -> Iterator[JavaOracle]:
    with streams_oracle.running() as oracle:
        yield oracle


@pytest.fixture(scope="module")
def java() -> Iterator[JavaOracle]:
    with streams_oracle.running("StreamsApplication") as oracle:
        yield oracle


def _halves(name: str) -> tuple[list[Step], list[Step]]:
    """Return inputs before and after the stop. Of several topics, each is read in one half: their order is certain."""
    topics = topics_of(TOPOLOGIES[name])
    dice = random.Random(name)
    if len(topics) == 1:
        inputs = random_inputs(dice, topics, 60)
        return inputs[:30], inputs[30:]
    first, last = topics[-1:], topics[:1]
    return random_inputs(dice, first, 30)[:-1], random_inputs(dice, last, 30)


@pytest.mark.parametrize("order", ["java_python", "python_java"])
@pytest.mark.parametrize("name", NAMES)
def test_an_application_continues_in_the_other_language(
    name: str, order: str, brokers: Server, driver: JavaOracle, java: JavaOracle, tmp_path: Path
) -> None:
    servers, app = brokers.bootstrap_servers, f"{name}-{order}".replace("_", "-")
    before, after = ([step for step in half if "advance_ms" not in step] for half in _halves(name))
    expected = driver.query(
        "run", topology=TOPOLOGIES[name], config={"statestore.cache.max.bytes": "0"}, inputs=before + after
    )

    def rename(topic: str) -> str:
        return f"{app}.{topic}"

    topology, topics = with_topics(TOPOLOGIES[name], rename), topics_of(TOPOLOGIES[name])
    create_topics(servers, map(rename, [*topics, "out"]))
    config = {"application.id": app, "bootstrap.servers": servers}
    for language, inputs in zip(order.split("_"), (before, after), strict=True):
        send(servers, inputs, rename)
        if language == "java":
            running: Application = JavaApplication(java, topology, config)
        else:
            running = PythonApplication(topology, {**config, "state.dir": str(tmp_path)})
        await_commits(servers, app, map(rename, topics))
        running.stop()
    assert expected["produced"]["out"], "the topology produces records"
    compared = COMPARED.get(name, list)
    assert compared(read(servers, rename("out"))) == compared(expected["produced"]["out"])
