from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from pybroker.client import Admin, TopicPartition
from pybroker.client.administration.topics import LATEST, ListedOffset
from tests.support.scripted_node import NEWEST, ScriptedNode

T0 = TopicPartition("t", 0)
Pair = tuple[ScriptedNode, ScriptedNode]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Node 1 was replaced by node 2 in epoch 1, and does not know it. Node 2 has one record more."""
    with ExitStack() as stack:
        old, new = (stack.enter_context(ScriptedNode(node=n, leader=n, epoch=n - 1, served=NEWEST)) for n in (1, 2))
        old.others, new.others = [new], [old]
        old.hold(0, 4, b"")
        new.hold(0, 5, b"")
        yield old, new
        old.hangs.set()
        new.hangs.set()


def test_confirmed_offsets_are_those_of_the_leader_that_another_broker_knows(pair: Pair) -> None:
    with Admin(pair[0].bootstrap_servers) as admin:
        assert admin.list_offsets({T0: LATEST})[T0].offset == 4
        listed = admin.list_offsets({T0: LATEST}, confirmed=True)[T0]
        assert (listed.offset, listed.leader_epoch) == (5, 1)


def test_offsets_of_the_newest_leader_are_confirmed_by_a_broker_that_knows_an_older_one(pair: Pair) -> None:
    with Admin(pair[1].bootstrap_servers) as admin:
        assert admin.list_offsets({T0: LATEST}, confirmed=True)[T0].offset == 5


def test_offsets_of_a_leader_count_if_no_other_broker_responds(pair: Pair) -> None:
    old, _ = pair
    with ScriptedNode(node=3) as closed:
        old.others = [closed]
    with Admin(old.bootstrap_servers) as admin:
        assert admin.list_offsets({T0: LATEST}, confirmed=True)[T0].offset == 4


def test_offsets_of_a_leader_without_epochs_count(pair: Pair) -> None:
    old, _ = pair
    old.epoch = -1
    with Admin(old.bootstrap_servers) as admin:
        assert admin.list_offsets({T0: LATEST}, confirmed=True)[T0] == ListedOffset(4, -1, -1)


def test_the_first_broker_that_responds_confirms(pair: Pair) -> None:
    old, new = pair
    with ScriptedNode(node=3, leader=2, epoch=1, served=NEWEST) as third:
        third.others, old.others = [old, new], [new, third]
        third.hangs.clear()
        with Admin(old.bootstrap_servers) as admin:
            assert admin.list_offsets({T0: LATEST}, confirmed=True)[T0].offset == 5
        third.hangs.set()
