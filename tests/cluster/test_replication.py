"""Replicas of a cluster of three processes in racks of their own: deletions, near reads, fetchers, throttles."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from pybroker.cli.main import main
from pybroker.client import Admin, NewTopic
from pybroker.client.administration.topics import BROKER, DELETE, SET, TOPIC, ConfigChange, TopicPartition
from pybroker.config.keys.topic_keys import RACK_AWARE
from pybroker.testing import Cluster
from tests.support.batches import batch_of, read_batches
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.process

RACKS = ("a", "b", "c")
RECORDS = 10
OFFSET_OUT_OF_RANGE, REQUEST_TIMED_OUT = 1, 7
WAIT_S = 60.0
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # A pause of this machine fences nobody.
    never_ms = 600_000
    properties = {"replica.selector.class": RACK_AWARE}
    with Cluster(
        brokers=3,
        racks=RACKS,
        properties=properties,
        broker_session_timeout_ms=never_ms,
        replica_lag_time_max_ms=never_ms,
    ) as cluster:
        yield cluster


def create(cluster: Cluster, name: str, replicas: int = 3) -> int:
    """Create a topic of one partition and return its leader."""
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 1, replicas)])
        admin.wait_for_leaders(name)
    return cluster.leader(name)


def fill(cluster: Cluster, topic: str, leader: int) -> None:
    with Wire(cluster.address(leader)) as wire:
        for number in range(RECORDS):
            assert produced(wire.query(produce(topic, batch_of(b"%d" % number)))).error_code == 0


def delete(cluster: Cluster, topic: str, leader: int, offset: int, timeout_ms: int = 20_000) -> tuple[int, int]:
    """Error code and low watermark."""
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}]
    with Wire(cluster.address(leader), timeout=2 * WAIT_S) as wire:
        response = wire.call("DeleteRecords", 2, topics=topics, timeout_ms=timeout_ms)
    (part,) = response.topics[0].partitions
    return part.error_code, part.low_watermark


def read(cluster: Cluster, broker: int, topic: str, offset: int, rack: str = "") -> Any:
    with Wire(cluster.address(broker)) as wire:
        return fetched(wire.query(fetch(topic, offset, rack_id=rack)))


def test_deleted_records_are_gone_from_every_live_replica_when_the_answer_comes(cluster: Cluster) -> None:
    leader = create(cluster, "deleted")
    fill(cluster, "deleted", leader)
    assert delete(cluster, "deleted", leader, 6) == (0, 6)
    for broker in cluster.brokers:
        assert read(cluster, broker, "deleted", 5).error_code == OFFSET_OUT_OF_RANGE, broker
    assert delete(cluster, "deleted", leader, -1) == (0, RECORDS)


def test_a_deletion_that_a_replica_does_not_do_times_out(cluster: Cluster) -> None:
    leader = create(cluster, "paused")
    fill(cluster, "paused", leader)
    assert delete(cluster, "paused", leader, 2) == (0, 2)
    # Neither the controller nor the leader: the others go on without it.
    paused = next(broker for broker in cluster.brokers if broker not in (leader, cluster.controller()))
    with cluster.paused(paused):
        assert delete(cluster, "paused", leader, 4, timeout_ms=300) == (REQUEST_TIMED_OUT, 2)
        assert read(cluster, leader, "paused", 3).error_code == OFFSET_OUT_OF_RANGE, "the leader has deleted it"
    assert delete(cluster, "paused", leader, 4) == (0, 4)


def wait_for_all(cluster: Cluster, broker: int, topic: str) -> None:
    """Wait until a replica shows all that is committed."""

    def shows() -> bool:
        return len(read_batches(read(cluster, broker, topic, 0).records)) == RECORDS

    wait_until(shows, within=WAIT_S, what=f"broker {broker} shows what is committed")


def test_a_consumer_is_sent_to_the_in_sync_replica_of_its_rack(cluster: Cluster) -> None:
    leader = create(cluster, "racks")
    cluster.wait_in_sync("racks")
    fill(cluster, "racks", leader)
    for broker, rack in zip(cluster.brokers, RACKS, strict=True):
        response = read(cluster, leader, "racks", 0, rack)
        if broker == leader:
            assert (response.preferred_read_replica, len(read_batches(response.records))) == (-1, RECORDS)
            continue
        assert (response.error_code, response.preferred_read_replica, response.records) == (0, broker, b"")
        assert (response.high_watermark, response.log_start_offset) == (RECORDS, 0)
        nearer = read(cluster, broker, "racks", 0, rack)
        assert (nearer.error_code, nearer.preferred_read_replica) == (0, -1)
        wait_for_all(cluster, broker, "racks")
        beyond = read(cluster, broker, "racks", RECORDS + 1, rack)
        assert beyond.error_code == OFFSET_OUT_OF_RANGE
    for rack in ("", "nowhere"):
        response = read(cluster, leader, "racks", 0, rack)
        assert (response.preferred_read_replica, len(read_batches(response.records))) == (-1, RECORDS)


def test_librdkafka_reads_from_its_rack(cluster: Cluster) -> None:
    leader = create(cluster, "near")
    cluster.wait_in_sync("near")
    fill(cluster, "near", leader)
    near = next(broker for broker in cluster.brokers if broker != leader)
    sources: set[int] = set()

    def note(text: str) -> None:
        partitions = json.loads(text)["topics"].get("near", {}).get("partitions", {})
        sources.update(state["broker"] for state in partitions.values())

    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "near",
            "client.rack": RACKS[near - 1],
            "auto.offset.reset": "earliest",
            "statistics.interval.ms": 50,
            "stats_cb": note,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition("near", 0, 0)])
        values: list[bytes | None] = []
        while len(values) < RECORDS:
            message = consumer.poll(WAIT_S)
            assert message is not None
            assert message.error() is None
            values.append(message.value())
        assert values == [b"%d" % number for number in range(RECORDS)]

        def is_near() -> bool:
            consumer.poll(0.1)
            return near in sources

        wait_until(is_near, within=WAIT_S, what=f"broker {near} is read from")
    finally:
        consumer.close()


def fetchers(cluster: Cluster, broker: int) -> set[str]:
    """The names of a broker's fetcher threads: fetch-SOURCE-NUMBER."""
    names = set()
    for task in Path(f"/proc/{cluster.pid(broker)}/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
        except OSError:  # It has ended.
            continue
        if re.fullmatch(r"fetch-\d+-\d+", name):
            names.add(name)
    return names


def numbers(cluster: Cluster, broker: int) -> set[int]:
    return {int(name.rpartition("-")[2]) for name in fetchers(cluster, broker)}


def test_the_number_of_fetchers_is_changed_while_the_broker_runs(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("dealt", 12, 3)])
        admin.wait_for_leaders("dealt")
        name, broker = "num.replica.fetchers", cluster.brokers[0]
        wait_until(lambda: numbers(cluster, broker) == {0}, within=WAIT_S, what="one fetcher for each leader")
        admin.alter_configs(str(broker), [ConfigChange(name, "2", SET)], BROKER)
        wait_until(lambda: numbers(cluster, broker) == {0, 1}, within=WAIT_S, what="two fetchers for each leader")
        produce_everywhere(cluster, "dealt", 12)
        admin.alter_configs(str(broker), [ConfigChange(name, None, DELETE)], BROKER)
        wait_until(lambda: numbers(cluster, broker) == {0}, within=WAIT_S, what="one fetcher for each leader again")
        produce_everywhere(cluster, "dealt", 12)


def test_a_broker_that_opens_a_listener_is_registered_anew_and_replicates_on(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("renewed", 6, 3)])
        admin.wait_for_leaders("renewed")
        broker = cluster.brokers[0]
        own = admin.describe_configs(str(broker), BROKER)
        before = {name: own[name].value or "" for name in ("listeners", "listener.security.protocol.map")}
        added = ("BESIDE://127.0.0.1:0", "BESIDE:PLAINTEXT")
        changes = [
            ConfigChange(name, f"{text},{more}", SET) for (name, text), more in zip(before.items(), added, strict=True)
        ]
        admin.alter_configs(str(broker), changes, BROKER)
        wait_until(lambda: "listeners BESIDE" in cluster.log(broker), within=WAIT_S, what="it is registered anew")
        produce_everywhere(cluster, "renewed", 6)
        admin.alter_configs(str(broker), [ConfigChange(name, None, DELETE) for name in before], BROKER)
        # The image may bring the epoch before the answer does, which is logged as well.
        wait_until(
            lambda: cluster.log(broker).count("and the listeners") == 2,
            within=WAIT_S,
            what="it is registered as before",
        )
        produce_everywhere(cluster, "renewed", 6)
        assert " fenced:" not in cluster.log(broker)


def produce_everywhere(cluster: Cluster, topic: str, partitions: int) -> None:
    """Have a record acknowledged by all replicas of each partition."""
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    outcomes: list[Any] = []
    for partition in range(partitions):
        producer.produce(topic, b"x", partition=partition, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(WAIT_S) == 0
    assert outcomes == [None] * partitions


def test_a_reassignment_is_held_to_its_throttle_and_the_throttle_goes_with_it(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size, rate = 4, 1
    leader = create(cluster, "moved", 1)
    batch = batch_of(b"x" * (MEBIBYTE // 4))
    with Wire(cluster.address(leader)) as wire:
        for _ in range(4 * size):
            assert produced(wire.query(produce("moved", batch, acks=1))).error_code == 0
    added = next(broker for broker in cluster.brokers if broker != leader)
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "moved", "partition": 0, "replicas": [leader, added]}]})
    )
    common = [
        "reassign-partitions",
        "--bootstrap-server",
        cluster.bootstrap_servers,
        "--reassignment-json-file",
        str(plan),
    ]
    assert main([*common, "--execute", "--disallow-replication-factor-change"]) == 1
    refused = "Error reassigning partition(s):\nmoved-0: The replication factor is changed from 1 to 2"
    assert refused in capsys.readouterr().err
    began = time.monotonic()
    assert main([*common, "--execute", "--throttle", str(rate * MEBIBYTE)]) == 0
    assert f"The inter-broker throttle limit was set to {rate * MEBIBYTE} B/s" in capsys.readouterr().out
    with Admin(cluster.bootstrap_servers) as admin:
        settings = admin.describe_configs("moved", TOPIC)
        assert settings["leader.replication.throttled.replicas"].value == f"0:{leader}"
        assert settings["follower.replication.throttled.replicas"].value == f"0:{added}"
        cluster.wait_in_sync("moved", brokers=[leader, added], timeout=120)
        # A second's worth goes at once, and what is under way when the limit is reached.
        assert time.monotonic() - began > (size - 2) / rate - 0.5
        assert admin.list_partition_reassignments([TopicPartition("moved", 0)]) == {}
        assert main([*common, "--verify"]) == 0
        assert "is completed." in capsys.readouterr().out
        settings = admin.describe_configs("moved", TOPIC)
        assert settings["leader.replication.throttled.replicas"].value == ""


def test_what_is_in_sync_is_never_held_back(cluster: Cluster) -> None:
    leader = create(cluster, "steady")
    cluster.wait_in_sync("steady")
    names = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
    rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    with Admin(cluster.bootstrap_servers) as admin:
        admin.alter_configs("steady", [ConfigChange(name, "*", SET) for name in names], TOPIC)
        for broker in cluster.brokers:
            admin.alter_configs(str(broker), [ConfigChange(name, "1", SET) for name in rates], BROKER)
        try:
            fill(cluster, "steady", leader)
            assert set(cluster.in_sync("steady")) == set(cluster.brokers)
        finally:
            for broker in cluster.brokers:
                admin.alter_configs(str(broker), [ConfigChange(name, None, DELETE) for name in rates], BROKER)
