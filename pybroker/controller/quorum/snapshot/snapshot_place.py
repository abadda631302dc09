"""Whether a metadata log continues a snapshot: it contains the snapshot's last entry, or starts at the snapshot's end.

Must not know the contents of either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.log.metadata_log import split

if TYPE_CHECKING:
    from pybroker.controller.quorum.log.metadata_log import MetadataLog
    from pybroker.controller.quorum.snapshot.snapshots import SnapshotId


def continues(log: MetadataLog, snapshot: SnapshotId, *, is_alone: bool) -> bool:
    """Return whether the log contains the last entry of a snapshot, or starts at its end.

    Raises `MetadataLogError` if the log of the only voter has another entry at that offset.
    """
    if log.start_offset == snapshot.end_offset:
        return True
    if log.end_offset < snapshot.end_offset:
        return False
    last = next(split(log.read(snapshot.end_offset - 1, 1)))
    continues = (last.last_offset + 1, last.epoch) == (snapshot.end_offset, snapshot.epoch)
    if not continues and is_alone:
        raise MetadataLogError(
            f"{log.directory}: the entry before offset {snapshot.end_offset} is of epoch {last.epoch} and "
            f"ends at {last.last_offset + 1}, but the snapshot is of epoch {snapshot.epoch}: one of the two "
            "belongs to another log"
        )
    return continues
