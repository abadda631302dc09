"""Loading: a shard's log, streamed in chunks through the `load` of its machine.

Owns the way from the first record to the log's end. Between chunks the loop goes on. Must not know what a record means,
nor on which thread a chunk is read.

A leader's log holds nothing that will be taken back, so it is replayed to its end, and not to the high watermark, which
a new leader learns later than its replicas' records (as Kafka's `CoordinatorLoaderImpl` does). What is appended
meanwhile, to the log's end as it is then, is replayed as well.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.coordinator.runtime.kind import CoordinatorKind
    from pybroker.coordinator.runtime.log import PartitionLog
    from pybroker.coordinator.runtime.machine import ShardMachine

log = logging.getLogger("pybroker.coordinator.runtime")

_PROGRESS_S = 1.0


class Source(msgspec.Struct, frozen=True):
    """What is loaded."""

    name: str
    """Of the partition, for the log."""
    log: PartitionLog
    read: Callable[[int], Awaitable[bytes]]
    """Returns batches from an offset on, without holding up the loop."""


async def replay(source: Source, kind: CoordinatorKind[Any, Any], machine: ShardMachine[Any]) -> None:
    """Apply all that a log holds; raises `ValueError` where it ends too early, and what reading and decoding raise."""
    began = reported = time.monotonic()
    offset, replayed = source.log.log_start_offset, 0
    while offset < (end := source.log.log_end_offset):
        chunk = kind.codec.decode(await source.read(offset))
        if chunk.size == 0:
            raise ValueError(f"the log ends at offset {offset}, not at its end offset {end}")
        machine.load(chunk.records)
        offset, replayed = chunk.next_offset, replayed + len(chunk.records)
        if chunk.skipped:
            log.warning("%s has %d records of unknown types below %d", source.name, chunk.skipped, offset)
        if time.monotonic() - reported >= _PROGRESS_S:
            reported = time.monotonic()
            log.info("loading %s: at offset %d of %d", source.name, offset, end)
    log.log(
        logging.INFO if replayed else logging.DEBUG,
        "loaded %d %s from %d records of %s in %d ms",
        machine.entries(),
        kind.entries,
        replayed,
        source.name,
        (time.monotonic() - began) * 1000,
    )
