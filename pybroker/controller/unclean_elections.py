"""Unclean leader elections: a warning for each on the active controller, and their number.

Owns how an unclean election is recognized in the metadata. Must not decide who is elected: `cluster/elections.py` does,
and a machine logs nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.controller.cluster.partition_changes import RECOVERING
from pybroker.metadata.image import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage, PartitionImage

log = logging.getLogger("pybroker.controller")


class UncleanElections:
    """A publisher of the metadata image that logs and counts unclean leader elections on the active controller."""

    def __init__(self, is_active: Callable[[], bool]) -> None:
        """`is_active` returns whether this node is the active controller."""
        self._is_active = is_active
        self.count = 0
        """Unclean leader elections since the node started."""

    def publish(self, delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Log and count the unclean elections between the previous image and this one."""
        if not self._is_active():
            return
        for topic_id, index, before, after in delta.changed_partitions(image):
            if is_unclean(before, after):
                self.count += 1
                _warn(f"{image.topics.by_id[topic_id].name}-{index}", before, after)


def is_unclean(before: PartitionImage, after: PartitionImage) -> bool:
    """Return whether a leader was elected that was neither in sync nor an eligible leader replica (KIP-966).

    Such a leader begins to recover (KIP-704). A leader that recovers and returns is in the ISR alone.
    """
    return (
        after.leader_recovery_state == RECOVERING
        and after.leader not in (NO_LEADER, before.leader)
        and after.leader not in before.isr
        and after.leader not in before.eligible_leader_replicas
    )


def _warn(partition: str, before: PartitionImage, after: PartitionImage) -> None:
    # A partition without a leader keeps its last one, as the last known leader or as the only replica in the ISR.
    previous = (before.leader,) if before.leader != NO_LEADER else before.last_known_elr or before.isr
    log.warning(
        "Unclean leader election of %s in leader epoch %d: broker %d is the leader in place of broker %s. "
        "Broker %d was not in sync (ISR %s): the partition loses the records that broker %d lacks",
        partition,
        after.leader_epoch,
        after.leader,
        ", ".join(map(str, previous)),
        after.leader,
        list(before.isr),
        after.leader,
    )
