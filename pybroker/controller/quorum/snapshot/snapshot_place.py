"""Whether a metadata log continues a snapshot: has the snapshot's last entry, or begins behind it.

Must not know what is in either of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.log.metadata_log import split

if TYPE_CHECKING:
    from pybroker.controller.quorum.log.metadata_log import MetadataLog
    from pybroker.controller.quorum.snapshot.snapshots import SnapshotId


def continues(log: MetadataLog, snapshot: SnapshotId, *, is_alone: bool) -> bool:
    """Return whether the log has the last entry of a snapshot, or begins behind it.

    Raises `MetadataLogError` where the log of the only voter has another entry there.
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
            f"ends at {last.last_offset + 1}, and the snapshot there is of epoch {snapshot.epoch}: one of the two "
            "belongs to another log"
        )
    return continues
