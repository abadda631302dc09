"""Retention: what a log need not keep goes, by age, by size and by its start; the files go a while later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import Server, serving
from tests.conformance.test_configs import SET, TOPIC, alter, resource
from tests.conformance.test_delete_records import EARLIEST, LATEST, delete, offset_of
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched, produce, produced

OFFSET_OUT_OF_RANGE = 1
PATIENCE = 60
NOW_MS = int(time.time() * 1000)
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that looks for old segments all the time."""
    with serving(
        {
            "log.retention.check.interval.ms": "50",
            "log.initial.task.delay.ms": "0",
            "log.cleaner.backoff.ms": "50",
            "log.segment.delete.delay.ms": "1000",
        }
    ) as made:
        yield made


def segments(server: Server, topic: str, suffix: str = ".log") -> list[int]:
    """Base offsets of a topic's segments, as their files are named."""
    directory: Path = server.log_directory / f"{topic}-0"
    return sorted(int(path.name[:20]) for path in directory.iterdir() if path.name.endswith(suffix))


def append(wire: Wire, topic: str, age_ms: int, size: int = 10) -> None:
    """One record of that age."""
    batch = batch_of(b"v" * size, base_timestamp=NOW_MS - age_ms)
    assert produced(wire.query(produce(topic, batch))).error_code == 0


def completes(server: Server, topic: str, bases: list[int]) -> None:
    """Wait until the topic has exactly these segments."""
    wait_until(lambda: segments(server, topic) == bases, within=PATIENCE, what=f"segments {bases} of {topic}")


def started(wire: Wire, topic: str, start: int) -> None:
    wait_until(lambda: offset_of(wire, topic, EARLIEST) == start, within=PATIENCE, what=f"{topic} starts at {start}")


def test_segments_without_a_young_record_go(server: Server, wire: Wire, create: Callable[..., Any]) -> None:
    # A segment rolls when a record is more than a day younger than its first: old, older, old; young; younger.
    topic = create(**{"segment.ms": str(DAY_MS), "retention.ms": "-1"}).name
    for age_days in (9.0, 9.5, 9.2, 6.0, 4.0, 2.0):
        append(wire, topic, int(age_days * DAY_MS))
    completes(server, topic, [0, 3, 4, 5])
    assert alter(wire, resource(TOPIC, topic, ("retention.ms", SET, str(5 * DAY_MS))))[0].error_code == 0
    completes(server, topic, [4, 5])
    started(wire, topic, 4)
    assert fetched(wire.query(fetch(topic, 3))).error_code == OFFSET_OUT_OF_RANGE
    assert fetched(wire.query(fetch(topic, 4))).log_start_offset == 4


def test_an_old_active_segment_rolls_and_goes(server: Server, wire: Wire, create: Callable[..., Any]) -> None:
    topic = create(**{"retention.ms": "-1"}).name
    for _ in range(3):
        append(wire, topic, 3 * DAY_MS)
    assert alter(wire, resource(TOPIC, topic, ("retention.ms", SET, str(DAY_MS))))[0].error_code == 0
    completes(server, topic, [3])
    started(wire, topic, 3)
    assert offset_of(wire, topic, LATEST) == 3
    append(wire, topic, 0)
    assert (offset_of(wire, topic, EARLIEST), offset_of(wire, topic, LATEST)) == (3, 4)


def test_a_log_shrinks_while_it_stays_as_large_as_it_may_be(
    server: Server, wire: Wire, create: Callable[..., Any]
) -> None:
    topic = create(**{"segment.bytes": str(1 << 20), "retention.bytes": "-1"}).name
    for _ in range(6):
        append(wire, topic, 0, 600_000)
    completes(server, topic, [0, 1, 2, 3, 4, 5])
    size = (server.log_directory / f"{topic}-0" / f"{0:020}.log").stat().st_size
    limit = ("retention.bytes", SET, str(3 * size + 1))
    assert alter(wire, resource(TOPIC, topic, limit))[0].error_code == 0
    completes(server, topic, [2, 3, 4, 5])
    assert alter(wire, resource(TOPIC, topic, ("retention.bytes", SET, str(3 * size))))[0].error_code == 0
    completes(server, topic, [3, 4, 5])
    started(wire, topic, 3)


def test_what_lies_wholly_below_the_log_start_goes(server: Server, wire: Wire, create: Callable[..., Any]) -> None:
    topic = create(**{"segment.ms": str(DAY_MS), "retention.ms": "-1"}).name
    for age_days in (8, 6, 4, 2):
        append(wire, topic, age_days * DAY_MS)
        append(wire, topic, age_days * DAY_MS)
    completes(server, topic, [0, 2, 4, 6])
    assert delete(wire, (topic, 0, 5)) == [(0, 5)]
    completes(server, topic, [4, 6])
    assert delete(wire, (topic, 0, 8)) == [(0, 8)]
    completes(server, topic, [6])
    assert (offset_of(wire, topic, EARLIEST), offset_of(wire, topic, LATEST)) == (8, 8)


def test_without_the_policy_to_delete_a_log_is_kept(server: Server, wire: Wire, create: Callable[..., Any]) -> None:
    kept = create(**{"cleanup.policy": "", "segment.ms": str(DAY_MS), "retention.ms": "1"}).name
    seen = create(kept + "-seen", **{"segment.ms": str(DAY_MS), "retention.ms": "1"}).name
    for age_days in (8, 6, 4):
        append(wire, kept, age_days * DAY_MS)
        append(wire, seen, age_days * DAY_MS)
    completes(server, seen, [3])
    assert segments(server, kept) == [0, 1, 2]
    assert delete(wire, (kept, 0, 2)) == [(0, 2)]
    completes(server, kept, [2])


def test_a_compacted_log_is_deleted_from_where_its_policy_says_both(
    server: Server, wire: Wire, create: Callable[..., Any]
) -> None:
    policy = {"cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "1.0"}
    topic = create(**policy, **{"segment.ms": str(DAY_MS), "retention.ms": "-1"}).name
    for age_days in (8, 6, 4, 2):
        batch = keyed(b"%d" % age_days, age_days * DAY_MS)
        assert produced(wire.query(produce(topic, batch))).error_code == 0
    assert alter(wire, resource(TOPIC, topic, ("retention.ms", SET, str(5 * DAY_MS))))[0].error_code == 0
    started(wire, topic, 2)


def keyed(key: bytes, age_ms: int) -> bytes:
    from tests.support.batches import Batch, Record

    return Batch((Record(b"v", key=key),), base_timestamp=NOW_MS - age_ms).encode()


def test_files_are_renamed_at_once_and_removed_after_the_delay(
    server: Server, wire: Wire, create: Callable[..., Any]
) -> None:
    topic = create(**{"retention.ms": "-1", "file.delete.delay.ms": "60000"}).name
    brief = create(topic + "-brief", **{"retention.ms": "-1", "file.delete.delay.ms": "1"}).name
    for name in (topic, brief):
        append(wire, name, 3 * DAY_MS)
        assert alter(wire, resource(TOPIC, name, ("retention.ms", SET, str(DAY_MS))))[0].error_code == 0
        completes(server, name, [1])
    assert segments(server, topic, ".log.deleted") == [0]
    assert segments(server, topic, ".index.deleted") in ([0], [])
    assert segments(server, topic, ".timeindex.deleted") == [0]
    wait_until(lambda: segments(server, brief, ".deleted") == [], within=PATIENCE, what="the files are removed")


def test_an_index_has_its_full_size_until_its_segment_rolls(
    server: Server, wire: Wire, create: Callable[..., Any]
) -> None:
    topic = create(**{"segment.index.bytes": "1003", "segment.ms": str(DAY_MS), "retention.ms": "-1"}).name
    directory = server.log_directory / f"{topic}-0"
    for _ in range(3):
        append(wire, topic, 3 * DAY_MS, 5000)
    size = {suffix: (directory / f"{0:020}{suffix}").stat().st_size for suffix in (".index", ".timeindex")}
    assert size == {".index": 1000, ".timeindex": 996}
    append(wire, topic, 0)
    completes(server, topic, [0, 3])
    size = {suffix: (directory / f"{0:020}{suffix}").stat().st_size for suffix in (".index", ".timeindex")}
    assert size == {".index": 16, ".timeindex": 12}
