"""Loading: all that a log holds, chunk by chunk, also what comes meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from pybroker.coordinator.runtime.loading import Source, replay
from tests.support.counting import RECORD, CountingMachine, MemoryLog, kind


def source(log: MemoryLog, records_a_read: int = 2) -> tuple[Source, list[int]]:
    """A log to load, and the offsets that are read."""
    offsets: list[int] = []

    async def read(offset: int) -> bytes:
        offsets.append(offset)
        return log.read(offset, records_a_read * RECORD)

    return Source("__counts-0", log, read), offsets


async def loaded(log: MemoryLog) -> CountingMachine:
    machine = CountingMachine()
    await replay(source(log)[0], kind(), machine)
    return machine


async def test_a_log_is_replayed_in_chunks_from_its_start_to_its_end() -> None:
    log, machine = MemoryLog(1, 2, 3, 4, 5), CountingMachine()
    log.log_start_offset = 1
    given, offsets = source(log)
    await replay(given, kind(), machine)
    assert (machine.total, offsets) == (14, [1, 3])


async def test_an_empty_log_is_not_read() -> None:
    given, offsets = source(MemoryLog())
    await replay(given, kind(), CountingMachine())
    assert offsets == []


async def test_what_is_appended_meanwhile_is_replayed_as_well() -> None:
    log, more = MemoryLog(1, 2, 3), MemoryLog(10, 20, 30).written

    def grow() -> None:
        if more:
            log.append(more.pop(), 0)

    log.before_read = grow
    assert (await loaded(log)).total == 66


async def test_a_leader_replays_also_what_lies_above_its_high_watermark() -> None:
    log = MemoryLog(1, 2, 3)
    log.synced = 1
    assert (await loaded(log)).total == 6


async def test_a_log_that_ends_too_early_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog(1, 2, 3)
    whole: Callable[[int, int], bytes] = log.read
    monkeypatch.setattr(log, "read", lambda offset, most: b"" if offset == 2 else whole(offset, most))
    with pytest.raises(ValueError, match="ends at offset 2, not at its end offset 3"):
        await loaded(log)


async def test_records_of_unknown_types_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        await loaded(MemoryLog(1, 0, 3))
    assert "__counts-0 contains 1 records of unknown types before offset 2" in caplog.text
    assert "loaded 3 counts from 3 records of __counts-0" in caplog.text


async def test_a_record_that_cannot_be_read_is_skipped_and_named(caplog: pytest.LogCaptureFixture) -> None:
    assert (await loaded(MemoryLog(1, -5, 3))).total == 4
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert line == ("Skipping the record at offset 1 of __counts-0: it is below zero. Consequence: -5 is not counted")


async def test_a_thousand_records_that_cannot_be_read_are_a_hundred_and_one_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert (await loaded(MemoryLog(*[-1] * 1000, 3))).total == 3
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(lines) == 101
    assert lines[-1] == "__counts-0 contains 900 more records that cannot be read"
