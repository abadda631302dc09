"""The states of a classic group, with Kafka's names, and their transitions."""

from __future__ import annotations

from enum import Enum

from pybroker.machine.transitions import Transitions


class ClassicState(Enum):
    """The state of a classic group; clients receive the value."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members join; each earlier member has its rebalance timeout to rejoin."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All have joined and wait for the leader's assignment."""
    STABLE = "Stable"
    DEAD = "Dead"
    """The group is deleted, or another broker coordinates it."""


class ClassicStep(Enum):
    """A transition of a classic group."""

    REBALANCE = "a member joins, leaves, is lost or wants something else"
    JOINED = "the members that are to come have come"
    ALL_LEFT = "no member is left"
    ASSIGNED = "the leader's assignment is written"
    END = "the group is deleted, or its partition moves to another broker"


_S, _E = ClassicState, ClassicStep

TRANSITIONS = {
    (_S.EMPTY, _E.REBALANCE): _S.PREPARING_REBALANCE,
    (_S.STABLE, _E.REBALANCE): _S.PREPARING_REBALANCE,
    (_S.COMPLETING_REBALANCE, _E.REBALANCE): _S.PREPARING_REBALANCE,
    (_S.PREPARING_REBALANCE, _E.JOINED): _S.COMPLETING_REBALANCE,
    (_S.PREPARING_REBALANCE, _E.ALL_LEFT): _S.EMPTY,
    (_S.COMPLETING_REBALANCE, _E.ASSIGNED): _S.STABLE,
    (_S.EMPTY, _E.END): _S.DEAD,
    (_S.PREPARING_REBALANCE, _E.END): _S.DEAD,
    (_S.COMPLETING_REBALANCE, _E.END): _S.DEAD,
    (_S.STABLE, _E.END): _S.DEAD,
}

CLASSIC_LIFE = Transitions("classic group", ClassicState.EMPTY, TRANSITIONS)
