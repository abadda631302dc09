"""Loading: a shard's log, streamed in chunks through the `load` of its machine.

Owns the way from the first record to the log's end. Between chunks the loop goes on. Must not know what a record means,
nor on which thread a chunk is read.

A record that cannot be read is skipped, and one line names it: a log that was damaged, or that a later version has
written, keeps the other keys of its partition available. Kafka's coordinator of groups fails the whole partition there,
and its coordinator of transactions ignores all that follows.

A leader's log holds nothing that will be taken back, so it is replayed to its end, and not to the high watermark, which
a new leader learns later than its replicas' records (as Kafka's `CoordinatorLoaderImpl` does). What is appended
meanwhile, to the log's end as it is then, is replayed as well.
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
    """What is loaded."""

    name: str
    """Of the partition, for the log."""
    log: PartitionLog
    read: Callable[[int], Awaitable[bytes]]
    """Returns batches from an offset on, without holding up the loop."""


async def replay(source: Source, kind: CoordinatorKind[Any, Any], machine: ShardMachine[Any]) -> None:
    """Apply all that a log holds and that can be read; raises `ValueError` where the log ends too early, or where its
    batches do, and what reading raises.
    """
    began = reported = time.monotonic()
    offset, replayed, faults = source.log.log_start_offset, 0, 0
    while offset < (end := source.log.log_end_offset):
        batches = await source.read(offset)
        try:
            chunk = kind.codec.decode(batches)
        except MalformedMessage as error:
            raise ValueError(f"there is no batch at offset {offset}, or after it: {error}") from error
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
