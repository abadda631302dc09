"""Partitions of the coordinator's own broker: found by name, written to together, and confirmed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pybroker.coordinator.transaction.events import AddPartitions, ProducerIdentity
from pybroker.coordinator.transaction.own_partitions import EndedHere
from pybroker.machine.parts import MANY
from pybroker.node import own_partitions
from pybroker.node.own_partitions import BrokersPartitions
from pybroker.protocol.errors import ErrorCode

NOT_HERE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Markers:
    """Markers whose appends are answered when the test says so."""

    def __init__(self) -> None:
        self.ended: list[Any] = []
        self.then: Callable[[list[int]], None]

    def begin(self, ended: Sequence[Any], then: Callable[[list[int]], None]) -> None:
        self.ended, self.then = list(ended), then


def partitions(markers: Any, here: Callable[[str, int], bool]) -> BrokersPartitions:
    """Partitions that stand for themselves, where they are here."""

    def find(topic: str, index: int) -> Any:
        return (topic, index) if here(topic, index) else None

    return BrokersPartitions(find, markers, lambda: 7)


def ended(*partitions: tuple[str, int], producer_id: int = 1) -> EndedHere:
    return EndedHere(partitions, producer_id, 4, commits=True, coordinator_epoch=9, version=2)


def added(*partitions: tuple[str, int]) -> AddPartitions:
    return AddPartitions("t", ProducerIdentity(1, 4), frozenset(partitions), client_version=0)


def test_each_partition_gets_the_marker_of_its_transaction() -> None:
    markers, reported = Markers(), list[list[int]]()
    own = partitions(markers, lambda _topic, _index: True)
    own.write([ended(("a", 0), ("a", 1)), ended(("b", 0), producer_id=2)], reported.append)
    assert markers.ended == [
        (("a", 0), 1, 4, True, 9, 2),
        (("a", 1), 1, 4, True, 9, 2),
        (("b", 0), 2, 4, True, 9, 2),
    ]
    markers.then([0, NOT_LEADER, 0])
    assert reported == [[0, NOT_LEADER, 0]]


def test_what_is_not_here_is_said_in_its_place() -> None:
    markers, reported = Markers(), list[list[int]]()
    own = partitions(markers, lambda topic, index: topic == "a" and index % 2 == 1)
    own.write([ended(*(("a", index) for index in range(5))), ended(("b", 1))], reported.append)
    assert [one[0] for one in markers.ended] == [("a", 1), ("a", 3)]
    markers.then([0, NOT_LEADER])
    assert reported == [[NOT_HERE, 0, NOT_HERE, NOT_LEADER, NOT_HERE, NOT_HERE]]


def test_markers_of_groups_offsets_are_the_group_coordinators() -> None:
    own = partitions(Markers(), lambda _topic, _index: True)
    assert (own.takes("a"), own.takes("__consumer_offsets")) == (True, False)


def test_what_is_here_is_confirmed_and_of_very_many_some(monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed: list[Any] = []
    monkeypatch.setattr(own_partitions, "confirm_transaction", lambda *what: confirmed.append(what))
    own = partitions(Markers(), lambda _topic, index: index != 1)
    own.confirm(added(("a", 0), ("a", 1)), 9)
    own.confirm(added(("a", 1)), 9)
    assert confirmed == [([("a", 0)], "t", 1, 4, 9, 7)]
    own.confirm(added(*(("b", index) for index in range(2, 2 * MANY))), 9)
    assert len(confirmed[-1][0]) == MANY
