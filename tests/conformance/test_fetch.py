"""Fetch: whole batches, bounds, waiting, sessions (KIP-74, KIP-227, KIP-320, KIP-516)."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.conftest import Server, Topic
from tests.support.batches import batch_of, read_batches
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.one_and_three

OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
UNKNOWN_TOPIC_ID = 100

BEYOND_PATIENCE_MS = 600_000
"""Longer than `Wire` waits for an answer: a Fetch that is answered only when its wait ends fails its test."""


def fill(wire: Wire, topic: Topic, *batches: bytes, partition: int = 0) -> None:
    """Append batches, one request each."""
    for batch in batches:
        assert produced(wire.query(produce(topic.name, batch, partition=partition))).error_code == 0


def offsets(part: Any) -> list[int]:
    """First offsets of the batches in one partition's answer."""
    return [batch.base_offset for batch in read_batches(part.records or b"")]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_reads(wire: Wire, topic: Topic, version: int) -> None:
    fill(wire, topic, batch_of(b"a", b"b"), batch_of(b"c"))
    part = fetched(wire.query(fetch(topic.name, version=version, topic_id=topic.id)))
    assert (part.error_code, part.high_watermark, part.last_stable_offset) == (0, 3, 3)
    assert [batch.values for batch in read_batches(part.records)] == [[b"a", b"b"], [b"c"]]
    if version >= 5:
        assert part.log_start_offset == 0


def test_an_offset_inside_a_batch_gives_the_whole_batch(wire: Wire, topic: Topic) -> None:
    fill(wire, topic, batch_of(b"a"), batch_of(b"b", b"c", b"d"), batch_of(b"e"))
    part = fetched(wire.query(fetch(topic.name, 2)))
    assert offsets(part) == [1, 4]


def test_the_first_batch_comes_whole_however_small_the_bound(wire: Wire, topic: Topic) -> None:
    fill(wire, topic, batch_of(b"x" * 5000), batch_of(b"y"))
    part = fetched(wire.query(fetch(topic.name, partition_max_bytes=10, max_bytes=10)))
    assert [batch.values for batch in read_batches(part.records)] == [[b"x" * 5000]]


def test_later_partitions_stay_within_the_bound_of_the_request(wire: Wire, create: Callable[..., Topic]) -> None:
    topic = create(partitions=3)
    for partition in range(3):
        fill(wire, topic, batch_of(b"x" * 5000), partition=partition)
    (responded,) = wire.query(fetch(topic.name, partitions=(2, 0, 1), max_bytes=10)).responses
    sizes = {part.partition_index: len(part.records or b"") for part in responded.partitions}
    assert sizes[2] > 5000, "the first partition asked for makes progress"
    assert (sizes[0], sizes[1]) == (0, 0)


@pytest.mark.parametrize("version", [4, 12, 18])
def test_no_later_partition_begins_with_a_part_of_a_batch(
    wire: Wire, create: Callable[..., Topic], version: int
) -> None:
    topic, batch = create(partitions=3), batch_of(b"x" * 1000)
    for partition in range(3):
        fill(wire, topic, *[batch] * 4, partition=partition)
    requested = fetch(
        topic.name, version=version, topic_id=topic.id, partitions=range(3), max_bytes=len(batch) * 9 // 2
    )
    sizes = [len(part.records or b"") for part in wire.query(requested).responses[0].partitions]
    assert sizes == [len(batch) * 4, 0, 0], "half of a batch is left, of which a consumer could make nothing"
    requested = fetch(topic.name, version=version, topic_id=topic.id, partitions=range(3), partition_max_bytes=100)
    sizes = [len(part.records or b"") for part in wire.query(requested).responses[0].partitions]
    assert sizes == [len(batch), 0, 0]


def test_a_bound_between_batches_gives_those_that_fit(wire: Wire, topic: Topic) -> None:
    batch = batch_of(b"x" * 1000)
    fill(wire, topic, *[batch] * 10)
    part = fetched(wire.query(fetch(topic.name, partition_max_bytes=len(batch) * 4 + 10)))
    assert offsets(part) == [0, 1, 2, 3]


@pytest.mark.parametrize("offset", [4, 2**62, -1])
def test_an_offset_outside_the_log_is_out_of_range(wire: Wire, topic: Topic, offset: int) -> None:
    fill(wire, topic, batch_of(b"a", b"b", b"c"))
    part = fetched(wire.query(fetch(topic.name, offset)))
    assert part.error_code == OFFSET_OUT_OF_RANGE
    assert not part.records


def test_the_end_of_the_log_is_empty_and_no_error(wire: Wire, topic: Topic) -> None:
    fill(wire, topic, batch_of(b"a", b"b", b"c"))
    part = fetched(wire.query(fetch(topic.name, 3)))
    assert (part.error_code, part.high_watermark) == (0, 3)
    assert not part.records


def test_an_unknown_topic_is_answered_by_name_and_by_id(wire: Wire, topic: Topic) -> None:
    assert fetched(wire.query(fetch("no-such-topic", version=12))).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert fetched(wire.query(fetch("", version=13, topic_id=uuid.uuid4()))).error_code == UNKNOWN_TOPIC_ID
    assert fetched(wire.query(fetch(topic.name, partitions=(9,)))).error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_a_leader_epoch_of_the_future_is_unknown(wire: Wire, topic: Topic) -> None:
    assert fetched(wire.query(fetch(topic.name, leader_epoch=5))).error_code == UNKNOWN_LEADER_EPOCH
    assert fetched(wire.query(fetch(topic.name, leader_epoch=0))).error_code == 0


def test_an_error_is_answered_at_once_however_long_the_wait(wire: Wire) -> None:
    part = fetched(wire.query(fetch("no-such-topic", version=12, max_wait_ms=BEYOND_PATIENCE_MS, min_bytes=1)))
    assert part.error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_data_that_is_there_is_answered_at_once(wire: Wire, topic: Topic) -> None:
    fill(wire, topic, batch_of(b"a"))
    assert offsets(fetched(wire.query(fetch(topic.name, max_wait_ms=BEYOND_PATIENCE_MS, min_bytes=1)))) == [0]


def test_a_waiting_fetch_is_answered_by_the_append_that_satisfies_it(server: Server, wire: Wire, topic: Topic) -> None:
    waits = fetch(topic.name, max_wait_ms=BEYOND_PATIENCE_MS, min_bytes=1)
    number = wire.send(waits)
    with Wire(server.bootstrap_servers) as other:
        fill(other, topic, batch_of(b"late"))
    part = fetched(wire.receive(waits, number))
    assert [batch.values for batch in read_batches(part.records)] == [[b"late"]]


def test_a_waiting_fetch_goes_on_waiting_until_min_bytes_are_there(server: Server, wire: Wire, topic: Topic) -> None:
    batch = batch_of(b"x" * 100)
    waits = fetch(topic.name, max_wait_ms=BEYOND_PATIENCE_MS, min_bytes=3 * len(batch))
    number = wire.send(waits)
    with Wire(server.bootstrap_servers) as other:
        fill(other, topic, batch, batch, batch)
    assert offsets(fetched(wire.receive(waits, number))) == [0, 1, 2]


def test_a_fetch_that_nothing_satisfies_is_answered_after_its_wait(wire: Wire, topic: Topic) -> None:
    began = time.monotonic()
    part = fetched(wire.query(fetch(topic.name, max_wait_ms=300, min_bytes=1)))
    assert time.monotonic() - began > 0.25
    assert part.error_code == 0
    assert not part.records


def test_many_waiting_fetches_are_woken_by_one_append(server: Server, topic: Topic) -> None:
    seen: list[list[int]] = []
    waiting = threading.Barrier(21)

    def wait() -> None:
        with Wire(server.bootstrap_servers) as mine:
            waits = fetch(topic.name, max_wait_ms=BEYOND_PATIENCE_MS, min_bytes=1)
            number = mine.send(waits)
            waiting.wait(60)
            seen.append(offsets(fetched(mine.receive(waits, number))))

    threads = [threading.Thread(target=wait) for _ in range(20)]
    for thread in threads:
        thread.start()
    waiting.wait(60)
    with Wire(server.bootstrap_servers) as other:
        fill(other, topic, batch_of(b"all"))
    for thread in threads:
        thread.join(60)
    assert seen == [[0]] * 20


def test_a_session_answers_only_what_is_new(wire: Wire, create: Callable[..., Topic]) -> None:
    topic = create(partitions=3)
    fill(wire, topic, batch_of(b"a"), partition=1)
    full = wire.query(fetch(topic.name, partitions=range(3), session_epoch=0))
    assert full.error_code == 0
    assert full.session_id > 0
    assert [part.partition_index for part in full.responses[0].partitions] == [0, 1, 2]

    quiet = wire.query(fetch(topic.name, 1, partitions=(1,), session_id=full.session_id, session_epoch=1))
    assert (quiet.error_code, quiet.session_id, list(quiet.responses)) == (0, full.session_id, [])

    fill(wire, topic, batch_of(b"b"), partition=2)
    news = wire.query(fetch(topic.name, partitions=(), session_id=full.session_id, session_epoch=2))
    assert [(part.partition_index, offsets(part)) for part in news.responses[0].partitions] == [(2, [0])]


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_a_session_works_in_versions_with_names_and_with_ids(wire: Wire, topic: Topic, version: int) -> None:
    full = wire.query(fetch(topic.name, version=version, topic_id=topic.id, session_epoch=0))
    fill(wire, topic, batch_of(b"a"))
    news = wire.query(fetch("", version=version, partitions=(), session_id=full.session_id, session_epoch=1))
    assert offsets(fetched(news)) == [0]
    named = news.responses[0].topic_id if version >= 13 else news.responses[0].topic
    assert named == (topic.id if version >= 13 else topic.name)


def test_a_session_is_checked_by_id_and_epoch(wire: Wire, topic: Topic) -> None:
    full = wire.query(fetch(topic.name, session_epoch=0))
    wrong = wire.query(fetch(topic.name, partitions=(), session_id=full.session_id, session_epoch=7))
    unknown = wire.query(fetch(topic.name, partitions=(), session_id=full.session_id ^ 0x5A5A5A, session_epoch=1))
    assert wrong.error_code == INVALID_FETCH_SESSION_EPOCH
    assert unknown.error_code == FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_was_closed_is_gone(wire: Wire, topic: Topic) -> None:
    full = wire.query(fetch(topic.name, session_epoch=0))
    wire.query(fetch(topic.name, session_id=full.session_id, session_epoch=-1))
    after = wire.query(fetch(topic.name, partitions=(), session_id=full.session_id, session_epoch=1))
    assert after.error_code == FETCH_SESSION_ID_NOT_FOUND


def test_a_partition_that_was_forgotten_is_no_longer_answered(wire: Wire, create: Callable[..., Topic]) -> None:
    topic = create(partitions=2)
    full = wire.query(fetch(topic.name, partitions=range(2), session_epoch=0))
    forget = fetch(topic.name, partitions=(), session_id=full.session_id, session_epoch=1)
    structure = type(forget)[None].fields["forgotten_topics_data"].data_class
    forget.forgotten_topics_data = [structure(topic=topic.name, partitions=[0])]
    assert wire.query(forget).error_code == 0
    for partition in range(2):
        fill(wire, topic, batch_of(b"a"), partition=partition)
    news = wire.query(fetch(topic.name, partitions=(), session_id=full.session_id, session_epoch=2))
    assert [part.partition_index for part in news.responses[0].partitions] == [1]


def test_a_session_that_has_forgotten_its_last_partition_is_gone(wire: Wire, topic: Topic) -> None:
    session_id = wire.query(fetch(topic.name, session_epoch=0)).session_id
    forget = fetch(topic.name, partitions=(), session_id=session_id, session_epoch=1)
    structure = type(forget)[None].fields["forgotten_topics_data"].data_class
    forget.forgotten_topics_data = [structure(topic=topic.name, partitions=[0])]
    assert wire.query(forget).session_id == 0
    again = wire.query(fetch(topic.name, partitions=(), session_id=session_id, session_epoch=2))
    assert again.error_code == FETCH_SESSION_ID_NOT_FOUND


def test_a_fetch_without_session_gets_none(wire: Wire, topic: Topic) -> None:
    response = wire.query(fetch(topic.name, session_epoch=-1))
    assert (response.error_code, response.session_id) == (0, 0)


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_both_isolation_levels_read_what_no_transaction_wrote(wire: Wire, topic: Topic, isolation_level: int) -> None:
    fill(wire, topic, batch_of(b"a"))
    part = fetched(wire.query(fetch(topic.name, isolation_level=isolation_level)))
    assert offsets(part) == [0]
    assert not part.aborted_transactions


def test_a_pipelined_fetch_waits_for_the_answer_before_it(wire: Wire, topic: Topic) -> None:
    first = fetch(topic.name, max_wait_ms=200, min_bytes=1)
    second = produce(topic.name, batch_of(b"x" * 10))
    numbers = [wire.send(first), wire.send(second)]
    assert fetched(wire.receive(first, numbers[0])).error_code == 0
    assert produced(wire.receive(second, numbers[1])).error_code == 0
