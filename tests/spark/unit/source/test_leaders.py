"""Claims about `pybroker_spark.source.leaders`."""

from __future__ import annotations

from pybroker.client import TopicDescription
from pybroker.client.administration.topics import PartitionDescription
from pybroker_spark.source.leaders import LeaderWatch


def topic(*leaders: tuple[int, int], name: str = "orders", topic_id: bytes = b"a") -> TopicDescription:
    """A topic whose partitions have these leaders and epochs."""
    parts = [PartitionDescription(i, leader, epoch, (1, 2), (1, 2), ()) for i, (leader, epoch) in enumerate(leaders)]
    return TopicDescription(name, topic_id, False, tuple(parts))


def test_the_first_look_and_one_like_the_last_find_nothing() -> None:
    watch = LeaderWatch()
    assert watch.compare([topic((1, 4), (2, 0))]) is None
    assert watch.compare([topic((1, 4), (2, 0))]) is None
    assert watch.changes == 0


def test_partitions_with_a_newer_epoch_are_named_and_counted() -> None:
    watch = LeaderWatch()
    watch.compare([topic((1, 4), (2, 0), (1, 1))])
    reported = watch.compare([topic((2, 6), (2, 0), (-1, 2))])
    assert reported == "orders-0 has leader 2 (epoch 4 to 6), orders-2 has no leader (epoch 1 to 2)"
    assert watch.changes == 3


def test_an_older_answer_and_a_topic_made_anew_are_no_change() -> None:
    watch = LeaderWatch()
    watch.compare([topic((1, 4))])
    assert watch.compare([topic((1, 3))]) is None
    assert watch.compare([topic((1, 9), topic_id=b"b")]) is None
    assert watch.compare([topic((2, 5))]) is not None
    assert watch.changes == 1


def test_a_line_names_the_first_of_many() -> None:
    watch = LeaderWatch()
    watch.compare([topic(*[(1, 0)] * 20)])
    reported = watch.compare([topic(*[(2, 1)] * 20)])
    assert reported is not None
    assert reported.endswith("orders-7 has leader 2 (epoch 0 to 1) and 12 more")
    assert watch.changes == 20
