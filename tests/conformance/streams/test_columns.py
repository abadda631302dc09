"""Applications of column expressions against brokers: batches, rows that need records, and restarts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.client import Admin, Consumer, Producer, TopicPartition
from pybroker.streams import (
    JSON,
    STRING,
    KafkaStreams,
    StreamsBuilder,
    StreamsError,
    TopologyError,
    col,
    json_columns,
    with_columns,
)
from pybroker.streams.topology.topology import Topology
from tests.conformance.conftest import Server, serving
from tests.support.conditions import wait_until
from tests.support.streams_application import create_topics

pytestmark = pytest.mark.xdist_group("stream applications")

BROKER = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.heartbeat.interval.ms": "100"}
BROKER["group.streams.min.heartbeat.interval.ms"] = "100"
NUMBERS = itertools.count(1)
ROWS = 5_000


@pytest.fixture(scope="module")
def brokers() -> Iterator[Server]:
    with serving(BROKER) as server:
        yield server


@pytest.fixture
def app_id(brokers: Server) -> str:
    name = f"columns{next(NUMBERS)}"
    create_topics(brokers.bootstrap_servers, [f"{name}.in", f"{name}.out"], 2)
    return name


def _doubled(app: str) -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream(f"{app}.in", key_serde=STRING, value_serde=json_columns(id=int, amount=float))
    large = orders.filter(col("amount") >= 100)
    large.map_values(with_columns(amount=col("amount") * 2)).to(f"{app}.out", value_serde=JSON)
    return builder.build()


def _application(brokers: Server, app: str, directory: Path, **settings: object) -> KafkaStreams:
    return KafkaStreams(
        _doubled(app),
        {
            "application.id": app,
            "bootstrap.servers": brokers.bootstrap_servers,
            "commit.interval.ms": 100,
            "state.dir": directory,
            **{key.replace("_", "."): value for key, value in settings.items()},
        },
    )


def _send(brokers: Server, app: str, values: Iterator[bytes | None]) -> None:
    with Producer(brokers.bootstrap_servers) as producer:
        for at, value in enumerate(values):
            producer.send(f"{app}.in", value, f"key-{at % 7}".encode(), headers=[("at", str(at).encode())])


def _orders(begin: int, end: int) -> Iterator[bytes]:
    return (json.dumps({"id": at, "amount": at / 2}).encode() for at in range(begin, end))


def _read(brokers: Server, app: str, count: int) -> dict[int, list[tuple[str, str, dict[str, float]]]]:
    """Return the first records of the output by partition, with key, header and value."""
    found: dict[int, list[tuple[str, str, dict[str, float]]]] = {0: [], 1: []}
    properties = {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    with Consumer(brokers.bootstrap_servers, properties) as consumer:
        consumer.assign([TopicPartition(f"{app}.out", partition) for partition in found])

        def has_enough() -> bool:
            for record in consumer.poll(0.2):
                header = dict(record.headers)["at"]
                assert header is not None
                assert record.key is not None
                assert record.value is not None
                found[record.partition].append((record.key.decode(), header.decode(), json.loads(record.value)))
            return sum(map(len, found.values())) >= count

        wait_until(has_enough, within=60, what=f"{count} records of {app}.out")
    return found


def _count(metrics: dict[str, dict[str, float]], name: str) -> int:
    return int(sum(of_thread[name] for of_thread in metrics.values()))


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_batches_are_processed_once_across_a_restart(
    brokers: Server, app_id: str, tmp_path: Path, guarantee: str
) -> None:
    expected = {at: at / 2 * 2 for at in range(200, ROWS)}
    _send(brokers, app_id, _orders(0, ROWS // 2))
    with _application(brokers, app_id, tmp_path, processing_guarantee=guarantee, num_stream_threads=2) as app:
        app.start()
        _read(brokers, app_id, ROWS // 2 - 200)
    _send(brokers, app_id, _orders(ROWS // 2, ROWS))
    with _application(brokers, app_id, tmp_path, processing_guarantee=guarantee) as app:
        app.start()
        found = _read(brokers, app_id, len(expected))
        metrics = app.metrics()
    rows = [row for of_partition in found.values() for row in of_partition]
    assert sorted((int(value["id"]), value["amount"]) for _, _, value in rows) == sorted(expected.items())
    for of_partition in found.values():
        for key in {key for key, _, _ in of_partition}:
            ids = [value["id"] for its, _, value in of_partition if its == key]
            assert ids == sorted(ids), f"the records of {key} have changed their order"
    assert _count(metrics, "process-columns-total") == _count(metrics, "process-total") == ROWS - ROWS // 2
    with Admin(brokers.bootstrap_servers) as admin:
        committed = admin.list_group_offsets(app_id)
    assert sum(offset.offset for offset in committed.values()) == ROWS


def test_rows_that_need_records_keep_their_place(brokers: Server, app_id: str, tmp_path: Path) -> None:
    def values() -> Iterator[bytes | None]:
        for at, value in enumerate(_orders(0, 400)):
            yield b"{" if at == 250 else b'{"id": 251, "amount": "1"}' if at == 251 else value

    _send(brokers, app_id, values())
    settings = {"deserialization.exception.handler": "continue"}
    with _application(brokers, app_id, tmp_path, **settings) as app:
        app.start()
        found = _read(brokers, app_id, 198)
        wait_until(
            lambda: _count(app.metrics(), "dropped-records-total") == 2, within=60, what="two records are skipped"
        )
        _send(brokers, app_id, _orders(400, 500))
        found = _read(brokers, app_id, 298)
        metrics = app.metrics()
    rows = [row for of_partition in found.values() for row in of_partition]
    assert sorted(int(value["id"]) for _, _, value in rows) == [*range(200, 250), *range(252, 500)]
    for of_partition in found.values():
        for key in {key for key, _, _ in of_partition}:
            ids = [value["id"] for its, _, value in of_partition if its == key]
            assert ids == sorted(ids), f"the records of {key} have changed their order"
    assert 0 < _count(metrics, "process-columns-total") < _count(metrics, "process-total")


def test_row_that_fails_stops_the_application_and_is_named(brokers: Server, app_id: str, tmp_path: Path) -> None:
    _send(brokers, app_id, iter([b'{"id": 1, "amount": 200}', b'{"id": 2, "amount": []}']))
    with _application(brokers, app_id, tmp_path) as app:
        app.start()
        with pytest.raises(StreamsError, match=rf"cannot deserialize record {app_id}\.in-\d offset \d .*\$\.amount"):
            app.wait(60)


def test_unknown_field_is_refused_before_start(brokers: Server, app_id: str) -> None:
    builder = StreamsBuilder()
    orders = builder.stream(f"{app_id}.in", key_serde=STRING, value_serde=json_columns(amount=float))
    orders.filter(col("amuont") > 1).to(f"{app_id}.out", value_serde=JSON)
    settings = {"application.id": app_id, "bootstrap.servers": brokers.bootstrap_servers}
    with pytest.raises(TopologyError, match="unknown field 'amuont': expected one of amount"):
        KafkaStreams(builder.build(), settings)
