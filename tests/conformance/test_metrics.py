"""What Prometheus reads of a node whose client has produced and consumed: the right numbers, under the right names."""

from __future__ import annotations

import asyncio
import http.client
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import confluent_kafka
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pybroker.cli.top.clients import Client, query_clients
from pybroker.client import NewTopic
from pybroker.client.administration.admin import Admin
from pybroker.config.broker import BrokerConfig
from pybroker.metrics.registry import BY_NAME
from pybroker.node import Node
from pybroker.node.node import NodeError
from pybroker.storage.log_dirs.log_directory import CLEAN_SHUTDOWN_NAME
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.gates import Gate
from tests.support.wire import Wire, fetch, fetched, produce

RECORDS = 30
TOPICS = "kafka_server_brokertopicmetrics"
REQUESTS = "kafka_network_requestmetrics"
LEADERS = "kafka_server_replicamanager_leadercount"
REQUEST_TIME = "kafka_server_request_request_time_seconds"
RUNNING = 3
TOPIC_COUNT = int(os.environ.get("PYBROKER_METRICS_TOPICS", "2000"))
"""`make soak` has 10,000."""

Series = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def query(address: tuple[str, int], path: str) -> tuple[int, str]:
    with closing(http.client.HTTPConnection(*address, timeout=60)) as client:
        client.request("GET", path)
        response = client.getresponse()
        return response.status, response.read().decode()


def scrape(address: tuple[str, int]) -> Series:
    """Every series, as the parser of Prometheus' client reads them; every family is registered."""
    return text_and_series(address)[1]


def text_and_series(address: tuple[str, int]) -> tuple[str, Series]:
    status, text = query(address, "/metrics")
    assert status == 200
    families = list(text_string_to_metric_families(text))
    assert [one.name for one in families if one.name not in BY_NAME] == []
    return text, {(s.name, frozenset(s.labels.items())): s.value for one in families for s in one.samples}


def value(series: Series, name: str, **labels: str) -> float:
    return series[name, frozenset(labels.items())]


def config(directory: Path, **settings: str) -> BrokerConfig:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory),
        "admin.http.listener": "127.0.0.1:0",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "num.network.threads": "2",
    }
    return BrokerConfig({**properties, **{name.replace("_", "."): text for name, text in settings.items()}})


def exchange(servers: str, scraped: Callable[[], Series]) -> tuple[Series, Series]:
    """Produce and consume records of a topic, and something else; what was read while a consumer waited, and after."""
    with Admin(servers) as admin:
        admin.create_topics(["orders", "zebras"])
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "acks": "all"})
    for number in range(RECORDS):
        producer.produce("orders", b"%04d" % number)
    assert producer.flush(60) == 0
    with Wire(servers) as wire:
        wire.query(produce("zebras", batch_of(b"x" * 100)))
        wire.query(produce("zebras", batch_of(b"x" * 2_000_000)))
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "shop", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 10_000}
    )
    consumer.subscribe(["orders"])
    found: list[confluent_kafka.Message] = []
    while len(found) < RECORDS:
        found += consumer.consume(RECORDS, 1)
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"

    def waiting() -> Series:
        series = scraped()
        is_waiting = value(series, purgatory, delayedOperation="Fetch") == 1
        return series if is_waiting and times_of(series, "FetchConsumer") == count_of(series, "Fetch") - 1 else {}

    def responded() -> Series:
        series = scraped()
        return series if times_of(series, "Produce") == count_of(series, "Produce") else {}

    while_waiting = wait_until(waiting, within=60, what="the consumer waits for more, and all else is answered")
    consumer.close()
    return while_waiting, wait_until(responded, within=60, what="the times of all Produces are counted")


def count_of(series: Series, api: str) -> float:
    return value(series, f"{REQUESTS}_requests_total", request=api)


def times_of(series: Series, kind: str) -> float:
    return value(series, f"{REQUESTS}_totaltime_seconds_count", request=kind)


async def test_what_a_client_did_is_what_prometheus_reads(tmp_path: Path) -> None:
    node = Node(config(tmp_path, metrics_topics_max="2"))
    (listener,) = await node.start()
    try:
        address = node.admin_address
        assert address is not None
        servers = f"127.0.0.1:{listener.bound.port}"
        during, after = await asyncio.to_thread(exchange, servers, lambda: scrape(address))
        ready = await asyncio.to_thread(query, address, "/readyz")
    finally:
        await node.stop()
    assert ready == (200, "ready\n")
    # __consumer_offsets is the first by name; its records are the coordinator's, and no producer's.
    assert value(after, f"{TOPICS}_topic_messagesin_total", topic="orders") == RECORDS
    assert value(after, f"{TOPICS}_messagesin_total") == RECORDS + 1
    assert value(after, f"{TOPICS}_bytesrejected_bytes_total") > 2_000_000
    assert value(after, f"{TOPICS}_failedproducerequests_total") == 0, "what is too large is the client's mistake"
    assert value(after, f"{TOPICS}_topic_bytesin_bytes_total", topic="orders") > RECORDS * 4
    sent = value(after, f"{TOPICS}_topic_bytesout_bytes_total", topic="orders")
    assert sent == value(after, f"{TOPICS}_bytesout_bytes_total")
    assert sent == value(after, f"{TOPICS}_topic_bytesin_bytes_total", topic="orders")
    assert value(after, "pybroker_metrics_topics_omitted") == 1
    assert {dict(labels)["topic"] for name, labels in after if name == "kafka_log_log_logendoffset"} == {
        "__consumer_offsets",
        "orders",
    }
    assert value(after, "kafka_log_log_logendoffset", topic="orders", partition="0") == RECORDS
    assert value(after, f"{REQUESTS}_errors_total", request="Produce", error="MESSAGE_TOO_LARGE") == 1
    assert value(after, f"{REQUESTS}_localtime_seconds_sum", request="Metadata") > 0
    groups = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    assert value(during, groups, protocol="classic", state="Stable") == 1
    assert value(during, "kafka_server_socket_server_metrics_connection_count", listener="PLAINTEXT") > 0
    assert value(after, LEADERS) == 3
    assert value(after, "kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert value(after, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert value(after, "kafka_controller_kafkacontroller_globaltopiccount") == 3
    assert value(after, "kafka_controller_controllerstats_uncleanleaderelections_total") == 0
    assert value(after, "kafka_server_raft_metrics_high_watermark") > 0
    commits = value(after, "kafka_server_raft_metrics_commit_latency_seconds_count")
    assert 0 < commits <= value(after, "kafka_server_raft_metrics_high_watermark")
    assert value(after, "kafka_controller_controllereventmanager_event_seconds_sum") > 0
    assert value(after, "kafka_server_kafkaserver_brokerstate") == RUNNING
    assert value(after, "process_resident_memory_bytes") > 0
    assert value(after, "kafka_log_logcleanermanager_uncleanable_partitions_count") == 0
    assert value(after, "pybroker_log_recovered_bytes_total") == 0
    assert [name for name, _ in after if name == "kafka_log_logmanager_remaininglogstorecover"] == []
    assert value(after, "kafka_log_logflushstats_flushes_total") > 0
    assert value(after, "kafka_log_logflushstats_seconds_total") > 0


async def test_what_a_recovery_has_left_is_read_on_its_way(tmp_path: Path) -> None:
    left = {"directory": str(tmp_path)}
    first = Node(config(tmp_path))
    (listener,) = await first.start()
    await asyncio.to_thread(create_one, f"127.0.0.1:{listener.bound.port}")
    await first.stop()
    (tmp_path / CLEAN_SHUTDOWN_NAME).unlink()  # as a kill leaves it
    gate = Gate(tmp_path / "orders-0" / "leader-epoch-checkpoint")
    with socket.create_server(("127.0.0.1", 0)) as found:
        address = found.getsockname()
    second = Node(config(tmp_path, admin_http_listener=f"127.0.0.1:{address[1]}"))
    starting = asyncio.ensure_future(second.start())
    try:
        await asyncio.to_thread(wait_until, gate.is_occupied, within=60, what="the recovery of a log")
        during = await asyncio.to_thread(scrape, address)
        gate.let_through(b"0\n0\n")
        await starting
        after = await asyncio.to_thread(scrape, address)
    finally:
        gate.close()
        await asyncio.wait([starting])
        await second.stop()
    assert value(during, "kafka_log_logmanager_remaininglogstorecover", **left) == 1
    assert value(during, "pybroker_log_remaining_recovery_bytes", **left) > 0
    assert value(after, "kafka_log_logmanager_remaininglogstorecover", **left) == 0
    assert value(after, "pybroker_log_remaining_recovery_bytes", **left) == 0


def create_one(servers: str) -> None:
    """Make a topic of one partition, with a record."""
    with Admin(servers) as admin, Wire(servers) as wire:
        admin.create_topics(["orders"])
        wire.query(produce("orders", batch_of(b"x" * 100)))


async def test_many_topics_have_a_page_of_bounded_size(tmp_path: Path) -> None:
    node = Node(config(tmp_path, metrics_topics_max="50"))
    (listener,) = await node.start()
    try:
        address = node.admin_address
        assert address is not None
        servers = f"127.0.0.1:{listener.bound.port}"
        few, _ = await asyncio.to_thread(create_and_scrape, servers, address, 0, 100)
        many, series = await asyncio.to_thread(create_and_scrape, servers, address, 100, TOPIC_COUNT)
        first = value(series, "process_resident_memory_bytes")
        for _ in range(10):
            many, series = await asyncio.to_thread(text_and_series, address)
    finally:
        await node.stop()
    assert value(series, "kafka_controller_kafkacontroller_globaltopiccount") == TOPIC_COUNT
    assert value(series, "pybroker_metrics_topics_omitted") == TOPIC_COUNT - 50
    assert value(series, LEADERS) == TOPIC_COUNT, "what is omitted is counted"
    topics = {dict(labels)["topic"] for name, labels in series if name == "kafka_log_log_size_bytes"}
    assert topics == {f"t{number:05}" for number in range(50)}
    assert many.count("\n") < few.count("\n") + 500, "requests of further kinds, and no topics"
    assert value(series, "process_resident_memory_bytes") < first + 16 * 2**20, "a scrape leaves nothing behind"


def create_and_scrape(servers: str, address: tuple[str, int], begin: int, end: int) -> tuple[str, Series]:
    with Admin(servers) as admin:
        for first in range(begin, end, 2000):
            admin.create_topics([f"t{number:05}" for number in range(first, min(first + 2000, end))])
    wait_until(lambda: value(scrape(address), LEADERS) == end, within=60, what=f"{end} partitions have a leader")
    return text_and_series(address)


def use_quotas(servers: str, address: tuple[str, int]) -> tuple[Series, dict[str, int]]:
    """Clients with quotas produce, fetch and create; the series, and the throttle times of the produces."""
    sizes = {"busy": 150_000, "calm": 1_000, **{f"idle-{number}": 10 for number in range(5)}}
    waits = {}
    with Admin(servers) as admin:
        admin.create_topics(["orders"])
        admin.wait_for_leaders("orders")
        limits = {"producer_byte_rate": 10_000.0, "consumer_byte_rate": 1e9, "request_percentage": 1e6}
        admin.alter_client_quotas({"client-id": None}, limits)
        admin.alter_client_quotas({"user": "ANONYMOUS"}, {"controller_mutation_rate": 2.0})
        admin.create_topics([NewTopic("more", 3)])
        for name, size in sizes.items():
            with Wire(servers, client_id=name) as wire:
                waits[name] = wire.query(produce("orders", batch_of(b"x" * size))).throttle_time_ms
                if name == "calm":
                    fetched(wire.query(fetch("orders", partition_max_bytes=200_000)))
        seen = query_clients([address])
        assert seen[Client("", "busy")].bytes_in > seen[Client("", "calm")].bytes_in > 0
        return scrape(address), waits


async def test_what_clients_use_of_their_quotas_is_what_prometheus_reads(tmp_path: Path) -> None:
    node = Node(config(tmp_path, metrics_clients_max="2"))
    (listener,) = await node.start()
    try:
        address = node.admin_address
        assert address is not None
        servers = f"127.0.0.1:{listener.bound.port}"
        series, waits = await asyncio.to_thread(use_quotas, servers, address)
    finally:
        await node.stop()
    busy, calm = ({"user": "", "client_id": name} for name in ("busy", "calm"))
    assert 150_000 < value(series, "kafka_server_produce_bytes_total", **busy) < 151_000
    assert 1_000 < value(series, "kafka_server_produce_bytes_total", **calm) < 2_000
    waited = value(series, "kafka_server_produce_throttle_time_seconds_total", **busy)
    assert waited == waits["busy"] / 1000
    assert waited > 4, "150 kB are 15 s at 10 kB a second, of which 10 count as passed"
    assert value(series, "kafka_server_produce_throttle_time_seconds_total", **calm) == 0
    assert 150_000 < value(series, "kafka_server_fetch_bytes_total", **calm) < 160_000
    shown = [dict(labels)["client_id"] for name, labels in series if name == "kafka_server_produce_bytes_total"]
    assert sorted(shown) == ["busy", "calm"], "those that used most"
    assert value(series, "pybroker_metrics_clients_omitted", quota="Produce") >= 5
    assert sum(number for (name, _), number in series.items() if name == f"{REQUEST_TIME}_total") > 0
    anonymous = {"user": "ANONYMOUS", "client_id": ""}
    assert value(series, "kafka_server_controllermutation_partitions_total", **anonymous) == 3
    assert 19 <= value(series, "kafka_server_controllermutation_tokens", **anonymous) <= 22


async def test_a_port_that_is_taken_keeps_the_node_from_starting_by_name(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        node = Node(config(tmp_path, admin_http_listener=address))
        with pytest.raises(NodeError, match=f"admin.http.listener {address}: Address already in use"):
            await node.start()
