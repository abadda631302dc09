"""Loading: replays a shard's log, in chunks, through the `load` of its machine.

Owns the replay from the first record to the log's end. Between chunks the loop runs other tasks. Must not know the
meaning of a record, nor the thread that reads a chunk.

An unreadable record is skipped and logged. So a log that was damaged, or written by a later version, keeps the other
keys of its partition available. Kafka's group coordinator fails the whole partition there, and its transaction
coordinator ignores all following records.

A leader's log contains no record that will be truncated, so it is replayed to its end, not to the high watermark: a new
leader learns the high watermark later than the records (as Kafka's `CoordinatorLoaderImpl` does). Records appended
during the replay are replayed as well.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.protocol.errors import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.coordinator.runtime.kind import CoordinatorKind
    from pybroker.coordinator.runtime.log import Fault, PartitionLog
    from pybroker.coordinator.runtime.machine import ShardMachine

log = logging.getLogger("pybroker.coordinator.runtime")

_PROGRESS_S = 1.0
_MOST_FAULT_LINES = 100


class Source(msgspec.Struct, frozen=True):
    """The log to load."""

    name: str
    """Name of the partition, for log messages."""
    log: PartitionLog
    read: Callable[[int], Awaitable[bytes]]
    """Returns batches from an offset on, without blocking the loop."""


async def replay(source: Source, kind: CoordinatorKind[Any, Any], machine: ShardMachine[Any]) -> None:
    """Apply all readable records of a log. Raises `ValueError` if the log or its batches end too early, and any error
    of the read.
    """
    began = reported = time.monotonic()
    offset, replayed, faults = source.log.log_start_offset, 0, 0
    while offset < (end := source.log.log_end_offset):
        batches = await source.read(offset)
        try:
            chunk = kind.codec.decode(batches)
        except MalformedMessage as error:
            raise ValueError(f"no batch found at or after offset {offset}: {error}") from error
        if chunk.size == 0:
            raise ValueError(f"the log ends at offset {offset}, not at its end offset {end}")
        machine.load(chunk.records)
        offset, replayed = chunk.next_offset, replayed + len(chunk.records)
        if chunk.skipped:
            log.warning("%s contains %d records of unknown types before offset %d", source.name, chunk.skipped, offset)
        for fault in chunk.faults[: max(_MOST_FAULT_LINES - faults, 0)]:
            _report(source.name, fault, kind.fault_effect(fault.key))
        faults += len(chunk.faults)
        if time.monotonic() - reported >= _PROGRESS_S:
            reported = time.monotonic()
            log.info("loading %s: at offset %d of %d", source.name, offset, end)
    if faults > _MOST_FAULT_LINES:
        log.error("%s contains %d more records that cannot be read", source.name, faults - _MOST_FAULT_LINES)
    log.log(
        logging.INFO if replayed else logging.DEBUG,
        "loaded %d %s from %d records of %s in %d ms",
        machine.entries(),
        kind.entries,
        replayed,
        source.name,
        (time.monotonic() - began) * 1000,
    )


def _report(name: str, fault: Fault, effect: str) -> None:
    first, last = fault.first_offset, fault.last_offset
    where = f"record at offset {first}" if first == last else f"records from offset {first} to {last}"
    log.error("Skipping the %s of %s: %s. Consequence: %s", where, name, fault.cause, effect)
