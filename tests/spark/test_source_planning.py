"""Claims about what the data source plans by what a broker says; no Spark session is needed for that."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterator, Sequence

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

from pybroker.client import Admin, NewTopic, Producer, TopicPartition
from pybroker.client.administration.topics import MorePartitions
from pybroker.client.errors import BrokerError
from pybroker.testing import Broker
from pybroker_spark.source.errors import DataLossError, OptionError
from pybroker_spark.source.options import ReadOptions, parse_read
from pybroker_spark.source.planning import Planner
from pybroker_spark.source.stream_reader import StreamReader

_numbers = itertools.count()
BEGUN_MS = int(time.time()) * 1000 - 1_000_000
"""Times of records begin here; older ones would be deleted by the topic's retention."""
_open: list[StreamReader] = []


@pytest.fixture(autouse=True)
def _stop_readers() -> Iterator[None]:
    yield
    while _open:
        _open.pop().stop()


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin) -> str:
    return make(admin, 2)


def make(admin: Admin, partitions: int, name: str | None = None) -> str:
    name = name or f"planned-{next(_numbers)}"
    admin.create_topics([NewTopic(name, partitions, 1)])
    admin.wait_for_leaders(name)
    return name


def fill(broker: Broker, topic: str, counts: Sequence[int], *, size: int = 10) -> None:
    """Records in each partition, a second apart."""
    with Producer(broker.bootstrap_servers) as producer:
        for partition, count in enumerate(counts):
            for number in range(count):
                producer.send(topic, b"x" * size, partition=partition, timestamp_ms=BEGUN_MS + number * 1000)


def options(broker: Broker, **given: str) -> ReadOptions:
    at = {"kafka.bootstrap.servers": broker.bootstrap_servers, "fetchOffset.retryIntervalMs": "10"}
    return parse_read({**at, **given})


def batch(broker: Broker, **given: str) -> list[tuple[str, int, int, int]]:
    chosen = options(broker, **given)
    chosen.check_batch()
    with Planner(chosen) as planner:
        return [(p.partition.topic, p.partition.partition, p.start, p.end) for p in planner.batch()]


def stream(broker: Broker, **given: str) -> StreamReader:
    chosen = options(broker, **given)
    chosen.check_stream()
    _open.append(StreamReader(chosen, ("value",)))
    return _open[-1]


def pieces(reader: StreamReader, start: object, end: object) -> list[tuple[int, int, int]]:
    """What a micro-batch reads, after a trip through the checkpoint's JSON."""
    planned = reader.partitions(json.loads(json.dumps(start)), json.loads(json.dumps(end)))
    return [(p.wanted.partition.partition, p.wanted.start, p.wanted.end) for p in planned]  # type: ignore[attr-defined]


def test_a_batch_reads_all_that_is_there(broker: Broker, topic: str) -> None:
    fill(broker, topic, [5, 3])
    assert batch(broker, subscribe=topic) == [(topic, 0, 0, 5), (topic, 1, 0, 3)]


def test_empty_partitions_take_no_task(broker: Broker, topic: str) -> None:
    fill(broker, topic, [0, 3])
    assert batch(broker, subscribe=topic) == [(topic, 1, 0, 3)]


def test_offsets_marks_and_times_may_begin_and_end_a_batch(broker: Broker, topic: str) -> None:
    fill(broker, topic, [5, 3])
    offsets = json.dumps({topic: {"0": 2, "1": -2}})
    ends = json.dumps({topic: {"0": -1, "1": 2}})
    assert batch(broker, subscribe=topic, startingOffsets=offsets, endingOffsets=ends) == [
        (topic, 0, 2, 5),
        (topic, 1, 0, 2),
    ]
    third, fourth = BEGUN_MS + 2000, BEGUN_MS + 3000
    assert batch(broker, subscribe=topic, startingTimestamp=str(third), endingTimestamp=str(fourth)) == [
        (topic, 0, 2, 3),
        (topic, 1, 2, 3),
    ], "no record is as young as the end: latest"
    times = json.dumps({topic: {"0": fourth - 1, "1": third}})
    assert batch(broker, subscribe=topic, startingOffsetsByTimestamp=times) == [(topic, 0, 3, 5), (topic, 1, 2, 3)]


def test_a_start_after_the_last_record_is_refused_or_means_latest(broker: Broker, topic: str) -> None:
    fill(broker, topic, [5, 3])
    time = str(BEGUN_MS + 3000)
    with pytest.raises(OptionError, match=f"{topic}-1: no record is at or after the starting time {time} ms"):
        batch(broker, subscribe=topic, startingTimestamp=time)
    assert batch(broker, subscribe=topic, startingTimestamp=time, startingOffsetsByTimestampStrategy="latest") == [
        (topic, 0, 3, 5)
    ]


def test_every_partition_must_be_named(broker: Broker, topic: str) -> None:
    with pytest.raises(
        OptionError, match=f"startingOffsets names {topic}-0; must name every partition: {topic}-0, {topic}-1"
    ):
        batch(broker, subscribe=topic, startingOffsets=json.dumps({topic: {"0": 0}}))


def test_a_pattern_is_searched_for_and_an_assignment_taken_as_it_is(broker: Broker, admin: Admin) -> None:
    one, other = make(admin, 1, "pattern-of-one"), make(admin, 2, "pattern-of-two")
    fill(broker, one, [1])
    fill(broker, other, [1, 1])
    assert batch(broker, subscribePattern="ern-of-(one|two)$") == [(one, 0, 0, 1), (other, 0, 0, 1), (other, 1, 0, 1)]
    assert batch(broker, assign=json.dumps({other: [1]})) == [(other, 1, 0, 1)]
    with pytest.raises(OptionError, match="assign: pattern-of-two-7 does not exist; there are pattern-of-two-0, patt"):
        batch(broker, assign=json.dumps({other: [1, 7]}))


def test_a_topic_that_does_not_exist_is_named(broker: Broker) -> None:
    with pytest.raises(BrokerError, match=r"topic 'nowhere'.*UNKNOWN_TOPIC_OR_PARTITION"):
        batch(broker, subscribe="nowhere")


def test_min_partitions_cuts_a_large_partition(broker: Broker, topic: str) -> None:
    fill(broker, topic, [30, 10])
    assert batch(broker, subscribe=topic, minPartitions="4") == [
        (topic, 0, 0, 10),
        (topic, 0, 10, 20),
        (topic, 0, 20, 30),
        (topic, 1, 0, 10),
    ]


def test_a_batch_from_deleted_records_is_a_loss(broker: Broker, admin: Admin, topic: str) -> None:
    fill(broker, topic, [5, 3])
    admin.delete_records({TopicPartition(topic, 0): 2})
    given = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 1, "1": 0}})}
    with pytest.raises(DataLossError, match=f"topic '{topic}' partition 0 offsets 1 to 5 cannot be read: .* 2 to 5"):
        batch(broker, **given)
    assert batch(broker, **given, failOnDataLoss="false") == [(topic, 0, 2, 5), (topic, 1, 0, 3)]


def test_a_stream_begins_at_the_latest_unless_an_option_says_else(broker: Broker, topic: str) -> None:
    fill(broker, topic, [5, 3])
    assert stream(broker, subscribe=topic).initialOffset() == {topic: {"0": 5, "1": 3}}
    assert stream(broker, subscribe=topic, startingOffsets="earliest").initialOffset() == {topic: {"0": 0, "1": 0}}


def test_a_first_micro_batch_is_replayed_from_where_it_began(broker: Broker, topic: str) -> None:
    fill(broker, topic, [5, 3])
    first = stream(broker, subscribe=topic)
    begin = first.initialOffset()
    fill(broker, topic, [2, 2])
    assert first.initialOffset() == begin, "Spark asks more than once"
    end = first.latestOffset(begin, ReadMaxRows(100))
    assert pieces(first, begin, end) == [(0, 5, 7), (1, 3, 5)]
    assert json.dumps(first.latestOffset(end, ReadMaxRows(100))) == json.dumps(end), "nothing to do"
    fill(broker, topic, [2, 0])
    again = stream(broker, subscribe=topic)
    assert pieces(again, again.initialOffset(), end) == [(0, 5, 7), (1, 3, 5)]
    assert pieces(again, end, end) == []
    assert pieces(again, end, again.latestOffset(end, ReadMaxRows(100))) == [(0, 7, 9)]


def test_a_micro_batch_ends_where_its_limit_says(broker: Broker, topic: str) -> None:
    fill(broker, topic, [30, 10])
    reader, start = stream(broker, subscribe=topic), {topic: {"0": 0, "1": 0}}
    assert reader.latestOffset(start, ReadAllAvailable()) == {topic: {"0": 30, "1": 10}}
    assert reader.latestOffset(start, ReadMaxRows(8)) == {topic: {"0": 6, "1": 2}}
    assert reader.reportLatestOffset() == {topic: {"0": 30, "1": 10}}


def test_the_options_set_the_limit(broker: Broker, topic: str) -> None:
    limits = {
        "maxOffsetsPerTrigger": ReadMaxRows(7),
        "maxBytesPerTrigger": ReadMaxBytes(7),
        "minOffsetsPerTrigger": ReadMinRows(7),
    }
    for name, limit in limits.items():
        assert stream(broker, subscribe=topic, **{name: "7"}).getDefaultReadLimit() == limit
    assert stream(broker, subscribe=topic).getDefaultReadLimit() == ReadAllAvailable()


def test_a_micro_batch_waits_for_enough(broker: Broker, topic: str) -> None:
    reader = stream(broker, subscribe=topic, minOffsetsPerTrigger="5")
    start, limit = {topic: {"0": 0, "1": 0}}, reader.getDefaultReadLimit()
    assert reader.latestOffset(start, limit) == start, "the first look is let through, and there is nothing"
    fill(broker, topic, [3, 1])
    assert reader.latestOffset(start, limit) == start
    fill(broker, topic, [0, 1])
    assert reader.latestOffset(start, limit) == {topic: {"0": 3, "1": 2}}


def test_a_delay_ends_the_wait(broker: Broker, topic: str) -> None:
    reader = stream(broker, subscribe=topic, minOffsetsPerTrigger="5", maxTriggerDelay="0ms")
    fill(broker, topic, [3, 1])
    start = {topic: {"0": 0, "1": 0}}
    for _ in range(2):
        assert reader.latestOffset(start, ReadMinRows(5)) == {topic: {"0": 3, "1": 1}}


def test_available_now_ends_where_it_began(broker: Broker, topic: str) -> None:
    fill(broker, topic, [3, 1])
    reader = stream(broker, subscribe=topic, minOffsetsPerTrigger="100")
    reader.prepareForTriggerAvailableNow()
    fill(broker, topic, [7, 7])
    target = {topic: {"0": 3, "1": 1}}
    half = reader.latestOffset({topic: {"0": 0, "1": 0}}, ReadMaxRows(2))
    assert half == {topic: {"0": 1, "1": 1}}
    assert reader.latestOffset(half, ReadMaxRows(2)) == target
    assert json.dumps(reader.latestOffset(target, ReadMaxRows(2))) == json.dumps(target)


def test_a_partition_that_is_added_is_read_from_its_beginning(broker: Broker, admin: Admin, topic: str) -> None:
    reader, start = stream(broker, subscribe=topic), {topic: {"0": 0, "1": 0}}
    admin.create_partitions({topic: MorePartitions(3)})
    admin.wait_for_leaders(topic)
    fill(broker, topic, [1, 0, 4])
    end = reader.latestOffset(start, ReadMaxRows(100))
    assert end == {topic: {"0": 1, "1": 0, "2": 4}}
    assert pieces(reader, start, end) == [(0, 0, 1), (2, 0, 4)]


def test_a_topic_that_is_added_is_read_from_its_beginning(broker: Broker, admin: Admin) -> None:
    one = make(admin, 1, "added-one")
    reader = stream(broker, subscribePattern="^added-", startingOffsets="earliest")
    start = reader.initialOffset()
    two = make(admin, 1, "added-two")
    fill(broker, two, [2])
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == {one: {"0": 0}, two: {"0": 2}}
    assert pieces(reader, start, end) == [(0, 0, 2)]


def test_a_replayed_micro_batch_is_planned_by_its_offsets_alone(broker: Broker, topic: str) -> None:
    fill(broker, topic, [9, 9])
    assert pieces(stream(broker, subscribe=topic), {topic: {"0": 2, "1": 3}}, {topic: {"0": 4, "1": 3}}) == [(0, 2, 4)]


def test_a_deleted_topic_is_a_loss_that_names_partition_and_offset(broker: Broker, admin: Admin, topic: str) -> None:
    fill(broker, topic, [5, 3])
    start = {topic: {"0": 4, "1": 3}}
    admin.delete_topics([topic])
    removed = f"topic '{topic}' partition 0 at offset 4, topic '{topic}' partition 1 at offset 3: gone, deleted"
    with pytest.raises(DataLossError, match=removed):
        stream(broker, subscribe=topic).latestOffset(start, ReadAllAvailable())
    lenient = stream(broker, subscribe=topic, failOnDataLoss="false")
    assert lenient.latestOffset(start, ReadAllAvailable()) == {}
    assert pieces(lenient, start, {}) == []


def test_a_topic_made_anew_is_a_loss_by_its_smaller_end(broker: Broker, admin: Admin, topic: str) -> None:
    fill(broker, topic, [5, 3])
    start = {topic: {"0": 5, "1": 3}}
    admin.delete_topics([topic])
    make(admin, 2, topic)
    fill(broker, topic, [2, 3])
    reason = re.escape(f"topic '{topic}' partition 0: was read to offset 5, and now ends at 2; was the topic deleted")
    with pytest.raises(DataLossError, match=reason):
        stream(broker, subscribe=topic).latestOffset(start, ReadAllAvailable())
    with pytest.raises(DataLossError, match=reason):
        stream(broker, subscribe=topic).partitions(start, {topic: {"0": 2, "1": 3}})


def test_a_running_stream_knows_a_topic_made_anew_by_its_id(broker: Broker, admin: Admin, topic: str) -> None:
    fill(broker, topic, [2, 3])
    reader, start = stream(broker, subscribe=topic), {topic: {"0": 2, "1": 3}}
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    admin.delete_topics([topic])
    make(admin, 2, topic)
    fill(broker, topic, [4, 4])
    reason = (
        f"topic '{topic}' partition 0 at offset 2, topic '{topic}' partition 1 at offset 3: the topic was made anew"
    )
    with pytest.raises(DataLossError, match=reason):
        reader.latestOffset(start, ReadAllAvailable())


def test_a_partition_that_is_added_and_has_lost_its_beginning_is_a_loss(
    broker: Broker, admin: Admin, topic: str
) -> None:
    fill(broker, topic, [5, 3])
    admin.delete_records({TopicPartition(topic, 1): 2})
    reader = stream(broker, subscribe=topic)
    with pytest.raises(DataLossError, match=f"{topic}-1: added, and begins at offset 2, not at 0"):
        reader.partitions({topic: {"0": 5}}, {topic: {"0": 5, "1": 3}})
