"""An installation of Apache Kafka goes over to pybroker and back, with its directories and its server.properties.

Kafka formats and fills it, pybroker fills it more, and Kafka has it again. What each of them left, the next one finds.
The commands are those of docs/guides/moving.md.
"""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pybench.peers.free_ports import free_ports
from pybench.peers.java import run_java_tool
from pybench.peers.kafka import Kafka
from pybroker.cli.main import main
from pybroker.client import Admin, Consumer, NewTopic, OffsetAndMetadata, Producer, SuspendedTransaction, TopicPartition
from pybroker.client.administration.acl_admin import Acl, AclPattern
from pybroker.client.administration.topics import BROKER, CLIENT_METRICS, EARLIEST, GROUP, SET, TOPIC, ConfigChange
from pybroker.client.administration.user_admin import ScramPassword
from pybroker.config.properties import read_properties
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.snapshot.snapshots import list_snapshots
from pybroker.storage.log_dirs.meta_properties import random_id
from tests.support import guides, programs
from tests.support.batches import batch_of, read_batches
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = [pytest.mark.java, pytest.mark.process, pytest.mark.timeout(900)]

KAFKA, PYBROKER = "kafka", "pybroker"
WAYS = {"there": (KAFKA, PYBROKER), "back": (PYBROKER, KAFKA)}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MECHANISM = "SCRAM-SHA-256"
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_WITHIN_S = 60
_STATIC, _DEFAULT = 4, 5
"""Sources of settings that nobody has changed in the metadata."""
_TOPICS, _PREFIXED, _DESCRIBE, _ALLOW = 2, 4, 8, 3
_TIMEOUT_MS = 600_000
"""No transaction ends by itself while the installation moves."""
SETTINGS = {
    "sasl.enabled.mechanisms": MECHANISM,
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{_MODULE};",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "100",
    # Both leave snapshots of the metadata, which the other one reads.
    "metadata.log.max.record.bytes.between.snapshots": "1000",
}


class Found(NamedTuple):
    """What an installation has, as clients see it."""

    cluster: Any
    topics: Any
    records: Any
    configs: Any
    groups: Any
    offsets: Any
    transactions: Any
    users: Any
    acls: Any
    quotas: Any


class Left(NamedTuple):
    """What one of the brokers leaves half done."""

    batch: bytes
    """Of an idempotent producer, appended."""
    suspended: SuspendedTransaction


@dataclass
class Moves:
    """What was seen on the way."""

    left: dict[str, Found] = field(default_factory=dict)
    """By who had it until then."""
    found: dict[str, Found] = field(default_factory=dict)
    """By who has it now."""
    duplicates: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Error and offset that a batch gets which the one before has appended; by who has it now."""
    allowed: dict[str, list[str]] = field(default_factory=dict)
    """Topics that a user sees who logs in with the password that the one before was given."""
    levels: list[dict[str, int]] = field(default_factory=list)
    ran: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Status and output of the guide's commands."""
    snapshots: dict[str, int] = field(default_factory=dict)
    log: str = ""


class Installation(Kafka):
    """Kafka as its distribution sets it up, at ports that stay, with a listener beside that asks for a password."""

    def __init__(self, directory: Path) -> None:
        self._ports = free_ports(3)
        self.secured = f"127.0.0.1:{self._ports[2]}"
        super().__init__(directory, SETTINGS, beside=f"SASL_PLAINTEXT://{self.secured}", ready_timeout_s=300)

    def _write_config(self, controller_port: int) -> Path:
        self.port, controller_port, _ = self._ports
        path = super()._write_config(controller_port)
        # The log names the voters (KIP-853).
        named = path.read_text().replace("controller.quorum.voters=1@", "controller.quorum.bootstrap.servers=")
        path.write_text(named)
        return path

    def _format(self, config: Path) -> None:
        done = run_java_tool("storage", "format", "-t", random_id(), "-c", str(config), "--standalone")
        assert done.returncode == 0, done.stderr or done.stdout


def fill(servers: str, here: str) -> Left:
    """Leave one of each, under names that begin with who has it."""
    codecs, compacted, once, user = (f"{here}-{name}" for name in ("codecs", "compacted", "once", "user"))
    compaction = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1"}
    with Admin(servers) as admin:
        topics = [
            NewTopic(codecs, len(CODECS), configs={"retention.ms": "987654321"}),
            NewTopic(compacted, 1, configs=compaction),
            NewTopic(once, 1),
        ]
        admin.create_topics(topics)
        for topic in topics:
            admin.wait_for_leaders(topic.name)
        for number, codec in enumerate(CODECS):
            with Producer(servers, {"compression.type": codec}) as producer:
                for size in range(20):
                    producer.send(codecs, b"value" * size, b"key", partition=number, headers=[("header", b"1")])
        admin.delete_records({TopicPartition(codecs, 0): 3})
        with Producer(servers, {"linger.ms": "0"}) as producer:
            for value in (b"first", b"last", b"end"):
                producer.send(compacted, value, value if value == b"end" else b"key")
                producer.flush()
        changes = [(TOPIC, once, "max.message.bytes", "2000000"), (BROKER, "", "log.retention.ms", "777777777")]
        changes += [(BROKER, "1", "message.max.bytes", "3000000")]
        changes += [(GROUP, f"{here}-consumer", "consumer.session.timeout.ms", "50000")]
        changes += [(CLIENT_METRICS, f"{here}-metrics", "interval.ms", "60000")]
        for kind, name, key, text in changes:
            admin.alter_configs(name, [ConfigChange(key, text, SET)], kind)
        offset = OffsetAndMetadata(7, metadata="here")
        admin.alter_group_offsets(f"{here}-classic", {TopicPartition(codecs, 1): offset})
        admin.alter_scram_user(user, give=ScramPassword(MECHANISM, f"{here}-secret"))
        admin.create_acls([Acl(AclPattern(_TOPICS, f"{here}-", _PREFIXED), f"User:{user}", "*", _DESCRIBE, _ALLOW)])
        admin.alter_client_quotas({"user": user}, {"producer_byte_rate": 1e6})
        producer_id, epoch = admin.new_producer_id()
    settings = {"group.id": f"{here}-consumer", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    with Consumer(servers, settings) as consumer:
        consumer.subscribe([once, codecs])
        wait_until(lambda: consumer.poll(1.0), within=_WITHIN_S, what="the group reads")
        consumer.commit()
    batch = batch_of(b"once", producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
    with Wire(servers) as wire:
        response = produced(wire.query(produce(once, batch)))
        assert response.error_code == 0, response
        wait_until(lambda: is_compacted(wire, compacted), within=_WITHIN_S, what=f"{compacted} is compacted")
    return Left(batch, write_transactions(servers, here, once))


def write_transactions(servers: str, here: str, topic: str) -> SuspendedTransaction:
    """Leave a committed one, an aborted one, and one that is open."""
    settings = {"transactional.id": here, "transaction.timeout.ms": str(_TIMEOUT_MS)}
    with Producer(servers, settings) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"committed")
        producer.begin_transaction()
        producer.send(topic, b"aborted")
        producer.flush()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"open")
        return producer.suspend_transaction()


def is_compacted(wire: Wire, topic: str) -> bool:
    """Whether the first record has gone; pybroker keeps its batch, without records (ADR 0096)."""
    batches = read_batches(fetched(wire.query(fetch(topic))).records or b"")
    return bool(batches) and (batches[0].base_offset > 0 or not batches[0].count)


def look(servers: str, before: Found | None = None) -> Found:
    """Ask for everything but Kafka's own topics, once the coordinators have loaded as many as there were before."""
    with Admin(servers) as admin, Wire(servers) as wire:
        if before is not None:
            counts = len(before.groups), len(before.transactions)
            wait_until(
                lambda: (len(admin.list_groups()), len(admin.list_transactions())) == counts,
                within=_WITHIN_S,
                what=lambda: f"{counts} groups and transactional ids are loaded, not {admin.list_groups()}",
            )
        names = admin.list_topics()
        described = {name: admin.wait_for_leaders(name) for name in names}
        partitions = [TopicPartition(name, one.index) for name in names for one in described[name].partitions]
        starts = admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
        groups = sorted((one.group_id, one.protocol_type, one.type) for one in admin.list_groups())
        metrics = admin.list_config_resources(CLIENT_METRICS)
        resources = [(TOPIC, name) for name in names] + [(BROKER, ""), (BROKER, "1")]
        resources += [(GROUP, name) for name, _, _ in groups] + [(CLIENT_METRICS, name) for name in metrics]
        wait_until(lambda: not ending(admin), within=_WITHIN_S, what="transactions have ended")
        ids = sorted(one.transactional_id for one in admin.list_transactions())
        return Found(
            cluster=admin.describe_cluster().cluster_id,
            topics={
                name: (one.topic_id, [(p.index, p.leader, p.replicas, p.isr) for p in one.partitions])
                for name, one in described.items()
            },
            records={one: read(wire, one, starts[one].offset) for one in partitions},
            configs={
                (kind, name): {
                    entry.name: entry.value
                    for entry in admin.describe_configs(name, kind).values()
                    if entry.source not in (_STATIC, _DEFAULT)
                }
                for kind, name in resources
            },
            groups=groups,
            offsets={name: admin.list_group_offsets(name) for name, _, _ in groups},
            transactions=admin.describe_transactions(ids),
            users=admin.describe_scram_users(),
            acls=sorted(admin.describe_acls()),
            quotas=admin.describe_client_quotas(),
        )


def ending(admin: Admin) -> bool:
    """Whether a transaction waits for its markers."""
    return any(one.state.startswith("Prepare") for one in admin.list_transactions())


def read(wire: Wire, partition: TopicPartition, start: int) -> Any:
    """Everything of a partition as it lies there: bytes, aborted transactions, where it starts, is stable, and ends."""
    raw, aborted, offset = b"", set(), start
    while True:
        part = served(wire, partition, offset)
        batches = read_batches(part.records or b"")
        raw += b"".join(batch.raw for batch in batches)
        aborted |= {(one.producer_id, one.first_offset) for one in part.aborted_transactions or ()}
        offset = batches[-1].last_offset + 1 if batches else part.last_stable_offset
        if offset >= part.last_stable_offset:
            return raw, aborted, start, part.last_stable_offset, part.high_watermark


def served(wire: Wire, partition: TopicPartition, offset: int) -> Any:
    """A Fetch's answer, once the partition has its leader."""
    made = fetch(partition.topic, offset, partitions=(partition.partition,), isolation_level=1)
    return wait_until(
        lambda: next((part for part in [fetched(wire.query(made))] if part.error_code == 0), None),
        within=_WITHIN_S,
        what=f"{partition} is served",
    )


def levels(servers: str) -> dict[str, int]:
    with Admin(servers) as admin:
        return {name: one.level for name, one in admin.describe_features().items() if one.level}


def allowed(secured: str, before: str) -> list[str]:
    """Log in as the user of the one before, and list topics."""
    words = f'{_MODULE} username="{before}-user" password="{before}-secret";'
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": MECHANISM, "sasl.jaas.config": words}
    with Admin(secured, settings) as admin:
        return sorted(admin.list_topics())


def go_on(servers: str, secured: str, moves: Moves, here: str, before: str, left: Left) -> None:
    """See what there is after a move, and end what was left half done."""
    moves.found[here] = look(servers, moves.left[before])
    moves.allowed[here] = allowed(secured, before)
    with Wire(servers) as wire:
        response = produced(wire.query(produce(f"{before}-once", left.batch)))
        moves.duplicates[here] = response.error_code, response.base_offset
    with Producer(servers, {"transactional.id": before, "transaction.timeout.ms": str(_TIMEOUT_MS)}) as producer:
        producer.resume_transaction(left.suspended)
        producer.commit_transaction()


COMMANDS = [
    line
    for block in guides.blocks("docs/guides/moving.md")
    if block.test == "tests/conformance/test_moving.py"
    for line in block.code.splitlines()
]


def follow(moves: Moves, kafka: Kafka, *commands: str) -> None:
    """Run the guide's lines that begin with these commands."""
    for line in COMMANDS:
        words = shlex.split(line)[1:]
        if words[0] in commands:
            printed = io.StringIO()
            given = {"server.properties": str(kafka.directory / "server.properties")}
            given |= {"saved.tar": str(kafka.directory / "saved.tar"), guides.SERVERS[0]: kafka.bootstrap_servers}
            with contextlib.redirect_stdout(printed):
                status = main([given.get(word, word) for word in words])
            moves.ran[line] = status, printed.getvalue()


@contextlib.contextmanager
def pybroker(kafka: Kafka, moves: Moves) -> Iterator[BrokerProcess]:
    """Our broker with Kafka's file, where Kafka was."""
    follow(moves, kafka, "storage-info", "config", "snapshot")
    given = read_properties(kafka.directory / "server.properties")
    with BrokerProcess(kafka.log_directory, given, port=kafka.port) as broker:
        try:
            yield broker
        finally:
            moves.log = broker.log
        follow(moves, kafka, "topics", "consumer-groups", "log-dirs")
        follow(moves, kafka, "stop")


@pytest.fixture(scope="module")
def moves(tmp_path_factory: pytest.TempPathFactory) -> Moves:
    programs.kafka_tools()
    seen, kafka = Moves(), Installation(tmp_path_factory.mktemp("installation"))
    metadata = kafka.log_directory / DIRECTORY_NAME
    with kafka:
        left = fill(kafka.bootstrap_servers, KAFKA)
        seen.left[KAFKA] = look(kafka.bootstrap_servers)
        seen.levels.append(levels(kafka.bootstrap_servers))
        follow(seen, kafka, "features")
    seen.snapshots[KAFKA] = sum(one.end_offset > 0 for one in list_snapshots(metadata))
    with pybroker(kafka, seen) as broker:
        go_on(broker.bootstrap_servers, kafka.secured, seen, PYBROKER, KAFKA, left)
        left = fill(broker.bootstrap_servers, PYBROKER)
        seen.left[PYBROKER] = look(broker.bootstrap_servers)
        seen.levels.append(levels(broker.bootstrap_servers))
    made = sum(one.end_offset > 0 for one in list_snapshots(metadata))
    seen.snapshots[PYBROKER] = made - seen.snapshots[KAFKA]
    with kafka:
        go_on(kafka.bootstrap_servers, kafka.secured, seen, KAFKA, PYBROKER, left)
        seen.levels.append(levels(kafka.bootstrap_servers))
    return seen


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", Found._fields)
def test_what_one_has_left_the_other_finds(moves: Moves, what: str, way: str) -> None:
    before, after = WAYS[way]
    left, found = getattr(moves.left[before], what), getattr(moves.found[after], what)
    assert left
    assert found == left


@pytest.mark.parametrize("way", WAYS)
def test_a_producers_batch_that_is_sent_again_is_known(moves: Moves, way: str) -> None:
    before, after = WAYS[way]
    ends = moves.left[before].records[TopicPartition(f"{before}-once", 0)]
    batch = next(one for one in read_batches(ends[0]) if one.values == [b"once"])
    assert moves.duplicates[after] == (0, batch.base_offset)


def test_a_transaction_that_was_left_open_is_committed_where_it_arrives(moves: Moves) -> None:
    for before, after in WAYS.values():
        described = moves.found[after].transactions[before]
        assert (described.state, described.partitions) == ("Ongoing", (TopicPartition(f"{before}-once", 0),))
    assert moves.left[PYBROKER].transactions[KAFKA].state == "CompleteCommit"


@pytest.mark.parametrize("way", WAYS)
def test_passwords_and_rights_stay(moves: Moves, way: str) -> None:
    before, after = WAYS[way]
    assert moves.allowed[after] == [f"{before}-codecs", f"{before}-compacted", f"{before}-once"]


def test_levels_of_parts_that_are_not_here_wait_for_kafka(moves: Moves) -> None:
    kafkas, ours, again = moves.levels
    assert again == kafkas
    assert ours == {name: level for name, level in kafkas.items() if name != "share.version"}
    for name in kafkas.keys() - ours.keys():
        assert f"The cluster has feature {name} at level {kafkas[name]}, which this version does not use" in moves.log


def test_each_reads_the_others_snapshots(moves: Moves) -> None:
    assert min(moves.snapshots.values()) > 0


def test_the_commands_of_the_guide_succeed(moves: Moves) -> None:
    assert moves.ran.keys() == set(COMMANDS)
    assert {line: status for line, (status, _) in moves.ran.items() if status} == {}
    (unserved,) = (printed for line, (_, printed) in moves.ran.items() if "--under-replicated-partitions" in line)
    assert unserved == ""
