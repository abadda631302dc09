"""The states of one shard: a partition of an internal topic from election to resignation.

Owns the transition table. Must not know how a log is read, nor what is coordinated.
"""

from __future__ import annotations

from enum import Enum

from pybroker.machine.transitions import Transitions


class ShardState(Enum):
    """The state of a shard."""

    LOADING = "its log is replayed"
    ACTIVE = "it answers"
    FAILED = "its log cannot be read, or written"
    CLOSED = "another broker leads the partition, or this one stops"


class ShardStep(Enum):
    """A transition of a shard."""

    LOADED = "the log is replayed to its end"
    FAIL = "the log cannot be read"
    RESIGN = "the partition has another leader, or a new leader epoch"


_S, _E = ShardState, ShardStep

TRANSITIONS = {
    (_S.LOADING, _E.LOADED): _S.ACTIVE,
    (_S.LOADING, _E.FAIL): _S.FAILED,
    (_S.LOADING, _E.RESIGN): _S.CLOSED,
    (_S.ACTIVE, _E.RESIGN): _S.CLOSED,
    (_S.FAILED, _E.RESIGN): _S.CLOSED,
}

SHARD_LIFE = Transitions("coordinator", ShardState.LOADING, TRANSITIONS)
