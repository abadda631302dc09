"""Differences between a metadata log that Apache Kafka has written and a log of this broker.

Owns the Raft index of a snapshot of Kafka's, which has none, and the check that a log does not end inside a
transaction. Must not know how a log is read.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.epoch_checkpoint import read_last_epoch
from pybroker.controller.quorum.native import verify_log
from pybroker.controller.quorum.snapshot.snapshot_header import UNKNOWN
from pybroker.controller.quorum.voter import SnapshotMark
from pybroker.controller.quorum.voters.voter_set import NO_DIRECTORY

if TYPE_CHECKING:
    from pybroker.controller.quorum.snapshot.snapshots import SnapshotFile
    from pybroker.controller.quorum.voters.voter_set import VoterSet
    from pybroker.metadata.loader import Loader

_SEGMENT = re.compile(r"(\d{20})\.log")


def mark_of(snapshot: SnapshotFile, voters: VoterSet, node_id: int) -> SnapshotMark | None:
    """Return the Raft index of a snapshot, None if the log is to be read without the snapshot.

    A snapshot of Kafka's has no Raft index. If the log contains its first entry, entries are counted from there.
    Otherwise the only voter of a quorum may choose: it takes the end offset, which no restart changes. Raises
    `MetadataLogError` if several voters would have to agree, and `OSError`.
    """
    if snapshot.raft_index != UNKNOWN:
        return SnapshotMark(snapshot.raft_index, snapshot.id)
    begin = _first_offset(snapshot)
    if snapshot.end_offset == 0 or begin == 0:
        return None
    if voters.node_ids != (node_id,):
        epoch, end = _log_end(snapshot)
        alone = "Start it as the only one (controller.quorum.voters)"
        if any(voter.directory_id != NO_DIRECTORY for voter in voters.voters):
            alone = "Start Kafka once more, have kafka-metadata-quorum remove-controller leave that one, start it here"
        raise MetadataLogError(
            f"{snapshot.path} is a snapshot of Apache Kafka, and its log begins at offset {begin}: several "
            f"voters would number the entries differently. The log ends in epoch {epoch} at offset {end}. Choose the "
            f"voter whose log ends in the highest epoch, and among equal epochs at the highest offset. {alone} "
            "and stop it: it writes a snapshot with the missing numbers. Replace the "
            f"{DIRECTORY_NAME} of the other voters with a copy of its own, and start all voters"
        )
    return SnapshotMark(snapshot.end_offset, snapshot.id)


def check_whole(loader: Loader) -> None:
    """Raise `MetadataLogError` for a log that ends inside a transaction: only its writer can complete it."""
    if loader.is_in_transaction:
        raise MetadataLogError(
            "the metadata log ends inside a transaction of Apache Kafka's controller: start Kafka on it once, which "
            "ends the transaction"
        )


def _log_end(snapshot: SnapshotFile) -> tuple[int, int]:
    """Return the epoch of the last entry beside a snapshot, and the log end offset; raises `OSError`."""
    directory = snapshot.path.parent
    found = verify_log(
        str(directory),
        clean_shutdown=True,
        recovery_point=-1,
        log_start_offset=-1,
        high_watermark=0,
        compacted_to=0,
        is_partition=False,
    )
    epoch, _ = read_last_epoch(directory)
    return max(epoch, snapshot.epoch), max(found.log_end_offset, snapshot.end_offset)


def _first_offset(snapshot: SnapshotFile) -> int:
    """Return the base offset of the first segment beside a snapshot, or the snapshot's end if there is none."""
    found = (_SEGMENT.fullmatch(name) for name in os.listdir(snapshot.path.parent))
    return min((int(match[1]) for match in found if match), default=snapshot.end_offset)
