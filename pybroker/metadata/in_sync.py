"""The leader's request to change a partition's ISR, and the controller's result (KIP-497).

Owns both data types, which the data plane's events, the channel to the controller and the cluster machine share. Must
not decide about a change: `controller.cluster` does.
"""

from __future__ import annotations

import msgspec

from pybroker.protocol.errors import ErrorCode

NO_BROKER_EPOCH = -1
"""Unknown broker epoch of an in-sync replica. The controller does not check it."""


class InSyncChange(msgspec.Struct, frozen=True):
    """A new ISR proposed by a partition's leader, with the leader's epochs."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """Broker id and broker epoch of each replica; `NO_BROKER_EPOCH` if the epoch is not to be checked."""
    leader_recovery_state: int = 0
    """1 while the leader recovers from an unclean election, else 0 (KIP-704)."""


class InSyncResult(msgspec.Struct, frozen=True):
    """The result of an `InSyncChange`: an error, or the partition's new state at the controller."""

    topic_id: bytes
    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = -1
