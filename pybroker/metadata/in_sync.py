"""What a leader asks the controller about the in-sync replicas of a partition, and what it is answered (KIP-497).

Owns the two shapes, which the data plane's events, the channel to the controller and the cluster machine share. Must
not know who decides: that is `controller.cluster`.
"""

from __future__ import annotations

import msgspec

from pybroker.protocol.errors import ErrorCode

NO_BROKER_EPOCH = -1
"""Stands for the epoch of an in-sync replica where the leader does not know it: it is not compared."""


class InSyncChange(msgspec.Struct, frozen=True):
    """The in-sync replicas that the leader of a partition wants, as of the epochs that it knows."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """Broker id and broker epoch of each, `NO_BROKER_EPOCH` where the epoch is not to be compared."""
    leader_recovery_state: int = 0
    """1 while the leader recovers from an unclean election, else 0 (KIP-704)."""


class InSyncResult(msgspec.Struct, frozen=True):
    """What became of an `InSyncChange`: the partition as the controller has it, unless there is an error."""

    topic_id: bytes
    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = -1
