from __future__ import annotations

from typing import Any

import pytest

from pybroker.cli import console_reading
from pybroker.cli.console_reading import Reading, Written
from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import ClientError

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


class StubConsumer:
    """Positions, and where they are set."""

    def __init__(self) -> None:
        self.positions: dict[TopicPartition, int] = {}
        self.requested = 0
        self.sought: dict[TopicPartition, object] = {}

    def position(self, partition: TopicPartition) -> int:
        self.requested += 1
        if partition not in self.positions:
            raise ClientError(f"{partition} is not assigned")
        return self.positions[partition]

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset({ONE, OTHER})

    def seek(self, partition: TopicPartition, to: object) -> None:
        self.sought[partition] = to


@pytest.fixture
def consumer() -> Any:
    return StubConsumer()


@pytest.fixture
def reading(consumer: Any) -> Reading:
    return Reading(consumer, written=Written())


NOWHERE = OffsetAndMetadata(0, leader_epoch=0)


def test_positions_are_set_back_to_what_is_written(consumer: Any, reading: Reading) -> None:
    consumer.positions = {ONE: 10}
    reading.wrote("t", 0, 10)
    consumer.positions = {ONE: 30}
    reading.return_unwritten()
    assert consumer.sought == {ONE: 10, OTHER: NOWHERE}


def test_between_two_questions_records_are_counted(consumer: Any, reading: Reading) -> None:
    consumer.positions = {ONE: 10}
    reading.wrote("t", 0, 10)
    consumer.positions = {ONE: 17}  # three records take five offsets, and one is not written yet
    reading.wrote("t", 0, 3)
    reading.return_unwritten()
    assert consumer.requested == 1
    assert consumer.sought[ONE] == 13


def test_positions_are_asked_for_again_after_a_while(
    consumer: Any, reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_reading, "_COMPLETE_S", 0.0)
    consumer.positions = {ONE: 10}
    reading.wrote("t", 0, 10)
    consumer.positions = {ONE: 17}
    reading.wrote("t", 0, 3)
    reading.return_unwritten()
    assert consumer.sought[ONE] == 17


def test_nothing_is_known_of_partitions_that_went_to_another_member(consumer: Any) -> None:
    written = Written()
    reading = Reading(consumer, written=written)
    consumer.positions = {ONE: 10, OTHER: 20}
    reading.wrote("t", 0, 10)
    reading.wrote("t", 1, 20)
    written.on_lost([OTHER])
    reading.return_unwritten()
    assert consumer.sought == {ONE: 10, OTHER: NOWHERE}


def test_a_position_that_nobody_knows_is_not_committed(consumer: Any, reading: Reading) -> None:
    reading.wrote("t", 0, 10)
    reading.return_unwritten()
    assert consumer.sought == {ONE: NOWHERE, OTHER: NOWHERE}


def test_without_a_group_nothing_is_asked_and_nothing_set_back(consumer: Any) -> None:
    reading = Reading(consumer)
    reading.wrote("t", 0, 10)
    reading.return_unwritten()
    assert (consumer.requested, consumer.sought) == (0, {})
