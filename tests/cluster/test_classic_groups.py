"""A broker is killed and restarted under groups of the classic protocol: they carry on from their offsets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.client import Admin, NewTopic, Producer
from tests.support.conditions import wait_until
from tests.support.group_audit import Member, check_one_owner_at_a_time, seen, wait_for_sharing
from tests.support.processes import BrokerProcess

pytestmark = [pytest.mark.process]

PARTITIONS, RECORDS = 12, 20
PATIENCE_SECONDS = 90


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker whose first member of a group waits for no others."""
    with BrokerProcess(tmp_path / "data", {"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


@pytest.fixture
def members() -> Iterator[list[Member]]:
    """The processes of a test, all of them ended with it."""
    started: list[Member] = []
    yield started
    for member in started:
        if member.process.poll() is None:
            member.kill()


def produce(broker: BrokerProcess, after: int) -> None:
    """Put records in each partition, and wait until they are acknowledged."""
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(RECORDS):
            for partition in range(PARTITIONS):
                producer.send("t", b"%d" % (after + number), partition=partition)


def read_everything(members: list[Member], written: int) -> None:
    """Wait until the members have read every record."""
    everything = {(partition, offset) for partition in range(PARTITIONS) for offset in range(written)}
    wait_until(lambda: seen(members).keys() >= everything, within=PATIENCE_SECONDS, what=f"{written} of each are read")


def committed(broker: BrokerProcess) -> set[int]:
    """The group's offsets, whichever partition they are of."""
    with Admin(broker.bootstrap_servers) as admin:
        offsets = admin.list_group_offsets("g")
        return {o.offset for o in offsets.values()} if len(offsets) == PARTITIONS else set()


@pytest.mark.parametrize("client", ["aiokafka", "confluent", "kafka-python", "pybroker", "pybroker-cooperative"])
def test_a_group_carries_on_from_its_offsets_when_the_broker_was_killed(
    broker: BrokerProcess, members: list[Member], client: str
) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", PARTITIONS, 1)])
        admin.wait_for_leaders("t")
    members += [Member.start(client, broker.bootstrap_servers, "t", "g") for _ in range(3)]
    wait_for_sharing(members, PARTITIONS)
    produce(broker, 0)
    read_everything(members, RECORDS)
    wait_until(lambda: committed(broker) == {RECORDS}, within=60, what="everything is committed")
    broker.kill()
    broker.start()
    produce(broker, RECORDS)
    read_everything(members, 2 * RECORDS)
    for member in members:
        member.end()
    again = [place for place, times in seen(members).items() if times > 1 and place[1] < RECORDS]
    assert again == [], "what was committed is not read again"
    assert committed(broker) == {2 * RECORDS}
    check_one_owner_at_a_time(members)
