"""Records of the metadata log that a voter among several had acknowledged, and that its log has lost.

Owns the proof by `metadata-log-position`, and the log messages of both sides: the voter, which may not lead before it
has the records again, and the leader, which sends them. Must not know messages or voting: the native quorum implements
them (ADR 0102). The only voter is checked before its start (`lost_records`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.log_position import POSITION_NAME, LogPosition
from pybroker.controller.quorum.log.lost_records import ACCEPT_LOSS
from pybroker.controller.quorum.voters.voter_set import node_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pybroker.controller.quorum.native import Quorum

log = logging.getLogger("pybroker.controller")


def find_lost(directory: Path, position: LogPosition, last_epoch: int, end_offset: int) -> LogPosition:
    """Return the position that a log has lost, zeros if it has lost nothing or the operator accepts the loss.

    `directory` is the parent of the log's directory; the log ends at `end_offset` with an entry of `last_epoch`.
    """
    if (last_epoch, end_offset) >= (position.epoch, position.end_offset):
        return LogPosition()
    path, accepted = directory / DIRECTORY_NAME, directory / DIRECTORY_NAME / ACCEPT_LOSS
    lost = (
        f"metadata log {path} lost records: it ends at offset {end_offset} in epoch {last_epoch}, and this voter had "
        f"acknowledged the records before offset {position.end_offset} in epoch {position.epoch} ({POSITION_NAME})"
    )
    if accepted.exists():
        log.warning("%s. Continuing without the lost records: %s exists", lost, accepted)
        return LogPosition()
    log.warning(
        "%s. Until this voter has fetched them from a leader, it votes only for voters that have them. If no voter has "
        "them, create the empty file %s and restart: the cluster continues without the records",
        *(lost, accepted),
    )
    return position


class Losses:
    """The losses that a voter knows: its own, and while it leads those of other voters."""

    def __init__(self) -> None:
        self.awaited: int | None = None
        """Index of the entry that the log must reach again before this voter may lead."""

    def follow(self, quorum: Quorum, end_of: Callable[[int], int]) -> None:
        """Log new losses; `end_of` returns the offset after an entry of this log."""
        awaited, lost = quorum.take_losses()
        for key, had, has in lost:
            log.warning(
                "voter %d lost records of the metadata log: it had acknowledged the records before offset %d, and "
                "its log ends at offset %d. The leader sends them again",
                *(node_of(key), end_of(had), end_of(has)),
            )
        if awaited is not None and self.awaited is None:
            log.warning(
                "the metadata log lost records: it ends at offset %d, and the leader of the quorum has more that this "
                "voter had acknowledged. Until it has fetched these records, it votes only for voters that have them",
                end_of(quorum.last_index),
            )
        elif awaited is None and self.awaited is not None:
            log.info(
                "the metadata log has fetched the lost records again, up to offset %d: this voter can lead again",
                end_of(quorum.last_index),
            )
        self.awaited = awaited
