"""Admin against a broker in this process."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from collections.abc import Iterator

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.async_admin import AsyncAdmin
from pybroker.client.administration.topics import EARLIEST, LATEST, NewTopic, TopicPartition
from pybroker.client.errors import BrokerError, ClosedError, SettingError, UnreachableError, UnsendableError
from pybroker.client.producing.producer import Producer
from pybroker.protocol.errors import ErrorCode
from pybroker.testing import Broker


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def admin(servers: str) -> Iterator[Admin]:
    with Admin(servers) as admin:
        yield admin


UNCLOSED = """
import asyncio, gc, sys
from pybroker.client import Admin

class Kept:
    pass

def keep():
    kept = Kept()
    kept.admin, kept.itself = Admin(sys.argv[1]), kept
    kept.admin.list_topics()
    return kept

async def collect():
    keep_no_more.clear()
    gc.collect()

kept = keep()
if sys.argv[2] == "in a loop":
    keep_no_more = [kept]
    del kept
    # Made outside of the loop, and collected inside of it.
    asyncio.run(collect())
"""


@pytest.mark.parametrize("when", ["at exit", "in a loop"])
def test_an_admin_that_nobody_closed_ends_in_silence(servers: str, when: str) -> None:
    """Its tasks are cancelled before the interpreter tears anything down: asyncio logs those that are not."""
    command = [sys.executable, "-c", UNCLOSED, servers, when]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_topics_are_created_described_listed_and_deleted(admin: Admin) -> None:
    (created,) = admin.create_topics([NewTopic("a", 3, 1, {"retention.ms": "1000"})])
    assert (created.name, created.partitions, created.replication_factor) == ("a", 3, 1)
    topic = admin.wait_for_leaders("a")
    assert topic.topic_id == created.topic_id
    assert [(p.index, p.replicas, p.isr) for p in topic.partitions] == [
        (i, (p.leader,), (p.leader,)) for i, p in enumerate(topic.partitions)
    ]
    assert "a" in admin.list_topics()
    assert admin.describe_configs("a")["retention.ms"].value == "1000"
    admin.delete_topics(["a"])
    assert "a" not in admin.list_topics()


def test_a_refusal_names_server_topic_and_reason(admin: Admin, servers: str) -> None:
    admin.create_topics(["twice"])
    with pytest.raises(BrokerError, match=rf"topic 'twice': {servers} answered TOPIC_ALREADY_EXISTS \(36\)") as refusal:
        admin.create_topics(["twice"])
    assert refusal.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
    with pytest.raises(BrokerError, match=r"'missing'.*UNKNOWN_TOPIC_OR_PARTITION"):
        admin.describe_topics(["missing"])


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        (NewTopic("large", 10**11), r"topics\[0\].num_partitions: 100000000000: expected a whole number from -2147483"),
        (NewTopic("large", 1, 2**15), r"topics\[0\].replication_factor: 32768: expected a whole number from -32768 to"),
        (NewTopic("x" * 40_000), r"topics\[0\].name: 40000 bytes or elements, at most 32767 fit"),
    ],
)
def test_a_value_beyond_its_field_is_reported_and_the_connection_goes_on(
    admin: Admin, topic: NewTopic, words: str
) -> None:
    with pytest.raises(UnsendableError, match=f"CreateTopicsRequest: {words}"):
        admin.create_topics([topic])
    assert topic.name not in admin.list_topics()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_topics_are_described_in_pages_as_at_once(admin: Admin, size: int) -> None:
    names = [f"pages-of-{size}-{letter}" for letter in "cab"]
    admin.create_topics([NewTopic(name, 2, 1) for name in names])
    for name in names:
        admin.wait_for_leaders(name)
    paged = admin.describe_topics(names, partitions_per_response=size)
    assert [topic.name for topic in paged] == names
    assert {part.eligible_leaders for topic in paged for part in topic.partitions} == {()}
    for topic, whole in zip(paged, admin.describe_topics(names), strict=True):
        assert [(p.index, p.leader, p.replicas) for p in topic.partitions] == [
            (p.index, p.leader, p.replicas) for p in whole.partitions
        ]
        assert whole.partitions[0].eligible_leaders is None
    with pytest.raises(BrokerError, match=r"'missing'.*UNKNOWN_TOPIC_OR_PARTITION"):
        admin.describe_topics(["missing", *names], partitions_per_response=size)


def test_asking_does_not_create_a_topic(admin: Admin) -> None:
    with pytest.raises(BrokerError):
        admin.describe_topics(["ghost"])
    assert "ghost" not in admin.list_topics()


def test_every_producer_id_is_new(admin: Admin) -> None:
    identities = [admin.new_producer_id() for _ in range(3)]
    assert len({producer_id for producer_id, _ in identities}) == 3
    assert {epoch for _, epoch in identities} == {0}


def test_offsets_of_an_empty_topic_are_zero(admin: Admin) -> None:
    admin.create_topics([NewTopic("empty", 2, 1)])
    admin.wait_for_leaders("empty")
    wanted = {TopicPartition("empty", 0): EARLIEST, TopicPartition("empty", 1): LATEST}
    assert {p.partition: found.offset for p, found in admin.list_offsets(wanted).items()} == {0: 0, 1: 0}


def test_a_partition_that_is_not_there_is_reported_with_how_many_there_are(admin: Admin, servers: str) -> None:
    admin.create_topics([NewTopic("pair", 2, 1)])
    admin.wait_for_leaders("pair")
    words = (
        rf"topic 'pair' partition 2: {servers} answered UNKNOWN_TOPIC_OR_PARTITION \(3\): "
        r"The topic 'pair' has 2 partitions\."
    )
    with pytest.raises(BrokerError, match=words) as refusal:
        admin.list_offsets({TopicPartition("pair", 1): LATEST, TopicPartition("pair", 2): LATEST})
    assert refusal.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(BrokerError, match=r"topic 'missing' partition 0: .*UNKNOWN_TOPIC_OR_PARTITION"):
        admin.list_offsets({TopicPartition("missing", 0): LATEST})


def test_records_are_deleted_where_they_can_be(admin: Admin, servers: str) -> None:
    admin.create_topics([NewTopic("shrinks", 1, 1)])
    admin.wait_for_leaders("shrinks")
    with Producer(servers) as producer:
        for _ in range(3):
            producer.send("shrinks", b"v")
    wanted = {TopicPartition("missing", 0): 1, TopicPartition("shrinks", 0): 2, TopicPartition("shrinks", 9): 1}
    outcomes = admin.delete_records(wanted)
    refused = {one.topic: outcome.meaning for one, outcome in outcomes.items() if isinstance(outcome, BrokerError)}
    assert outcomes[TopicPartition("shrinks", 0)] == 2
    assert refused["shrinks"] == "The topic 'shrinks' has 1 partition."
    assert refused.keys() == {"missing", "shrinks"}
    assert admin.list_offsets({TopicPartition("shrinks", 0): EARLIEST})[TopicPartition("shrinks", 0)].offset == 2


def test_the_cluster_describes_itself(admin: Admin, servers: str) -> None:
    cluster = admin.describe_cluster()
    assert [f"{b.host}:{b.port}" for b in cluster.brokers] == [servers]
    assert cluster.controller_id in {b.node_id for b in cluster.brokers}
    assert cluster.cluster_id


def test_features_have_the_level_in_force_and_those_that_could_be(admin: Admin) -> None:
    found = admin.describe_features()["metadata.version"]
    assert found.lowest <= found.level <= found.highest


async def test_the_asyncio_face_does_the_same(servers: str) -> None:
    async with AsyncAdmin(servers) as admin:
        await admin.create_topics(["async"])
        assert "async" in await admin.list_topics()
    with pytest.raises(ClosedError):
        await admin.list_topics()


def test_servers_that_cannot_be_reached_are_named() -> None:
    both = r"127\.0\.0\.1:1: .*127\.0\.0\.1:2: "
    limits = {"default.api.timeout.ms": "50", "request.timeout.ms": "50"}
    with Admin("127.0.0.1:1,127.0.0.1:2", limits) as admin, pytest.raises(UnreachableError, match=both):
        admin.list_topics()
    with pytest.raises(SettingError, match=r"request.timeout.ms=soon: must be a whole number"):
        Admin("127.0.0.1:1", {"request.timeout.ms": "soon"})


def test_one_that_nobody_closed_warns_and_ends_its_connections(servers: str) -> None:
    admin = Admin(servers)
    admin.list_topics()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        del admin
        gc.collect()
    # The collection may come to what other tests left open as well.
    reported = [
        str(warning.message)
        for warning in warned
        if "transport" in str(warning.message) or "Admin" in str(warning.message)
    ]
    assert len(reported) == 1, "its transports are closed, and say nothing"
    assert "call close(), or use it in a with block" in reported[0]


def test_a_closed_one_refuses_and_may_be_closed_again(servers: str) -> None:
    admin = Admin(servers)
    admin.list_topics()
    admin.close()
    admin.close()
    with pytest.raises(ClosedError):
        admin.list_topics()
    admin.close()
