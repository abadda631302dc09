"""Reconciliation of a member with the target: the partitions that it keeps, revokes and takes, and its epoch then.

    T  the target of the member, for topics that it subscribes to
    A  the partitions that the member has
    U  partitions of other members that this one did not have before

    keep = A and T          revoke = A - T          take = T - A - U

    revoke, and the member still has a part of it -> UNREVOKED_PARTITIONS: keep; its epoch is unchanged
    otherwise                                     -> keep + take; its epoch is the target's:
        T - A - take is not empty                    -> UNRELEASED_PARTITIONS
        else                                         -> STABLE

Owns that equation (KIP-848, "Member Reconciliation"; Kafka's `CurrentAssignmentBuilder`). A partition is assigned to a
member only when no other member has it, so no two members ever have the same partition. The owner of each partition is
an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.modern.member import RECONCILIATION, Held, Member, MemberState, Owned, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

NOBODY = -1
"""The epoch of a partition that no member has."""


class UnknownStateError(Exception):
    """The member's state is one of a newer broker, and it has not revoked all partitions yet."""


class Goal(msgspec.Struct, frozen=True):
    """The goal of a member's reconciliation."""

    epoch: int
    """The target's epoch."""
    target: Owned
    """The partitions of the member's target."""
    subscribed: Container[bytes]
    """Ids of the topics that it subscribes to."""
    subscription_changed: bool
    """Whether this heartbeat has changed its subscription."""


def reconcile(member: Member, goal: Goal, partition_epoch: Callable[[bytes, int], int], owned: Owned | None) -> Member:
    """Return the member after its next step; the same object if there is none.

    `partition_epoch` returns the epoch of a partition's owner, `NOBODY` without an owner. `owned` are the partitions
    in the member's heartbeat, None if it contains none. Raises `UnknownStateError`.
    """
    if member.state is MemberState.STABLE and member.epoch == goal.epoch:
        return _drop_unsubscribed(member, goal, owned) if goal.subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _has_any(owned, member.revoking):
        return _drop_unsubscribed(member, goal, owned) if goal.subscription_changed else member
    if member.state is MemberState.UNKNOWN:
        if owned is None or owned:
            raise UnknownStateError
        return _follow(member, goal.epoch, goal, partition_epoch, owned)
    return _follow(member, member.epoch, goal, partition_epoch, owned)


def _follow(
    member: Member, epoch: int, goal: Goal, partition_epoch: Callable[[bytes, int], int], owned: Owned | None
) -> Member:
    keep: dict[bytes, dict[int, int]] = {}
    revoke: dict[bytes, dict[int, int]] = {}
    waits = False
    for topic, partitions in member.assigned.items():
        wanted = _wanted(goal, topic)
        for partition, since in partitions.items():
            (keep if partition in wanted else revoke).setdefault(topic, {})[partition] = since
    if revoke and _has_any(owned, revoke):
        return _step(member, Step.REVOKE, epoch, keep, revoke)
    for topic in goal.target:
        had, revoked = member.assigned.get(topic, {}), member.revoking.get(topic, {})
        for partition in sorted(_wanted(goal, topic) - had.keys()):
            if partition_epoch(topic, partition) == NOBODY or partition in revoked:
                keep.setdefault(topic, {})[partition] = goal.epoch
            else:
                waits = True
    return _step(member, Step.WAIT if waits else Step.COMPLETE, goal.epoch, keep, {})


def _drop_unsubscribed(member: Member, goal: Goal, owned: Owned | None) -> Member:
    """Revoke topics outside of the member's subscription at once; the new target will not contain them."""
    removed = {topic: held for topic, held in member.assigned.items() if topic not in goal.subscribed}
    if not removed:
        # Kafka's builder rebuilds a member without any subscription, so that its previous epoch is updated.
        bare = not member.topics and not goal.subscribed and not member.assigned and not member.revoking
        return _moved(member, member.state, member.epoch, {}, {}) if bare else member
    keep = {topic: held for topic, held in member.assigned.items() if topic not in removed}
    revoke: dict[bytes, Mapping[int, int]] = dict(member.revoking)
    for topic, held in removed.items():
        revoke[topic] = {**revoke.get(topic, {}), **held}
    if _has_any(owned, revoke):
        return _step(member, Step.REVOKE, member.epoch, keep, revoke)
    return _moved(member, member.state, member.epoch, keep, member.revoking)


def _wanted(goal: Goal, topic: bytes) -> frozenset[int]:
    return goal.target.get(topic, frozenset()) if topic in goal.subscribed else frozenset()


def _has_any(owned: Owned | None, held: Held) -> bool:
    """Return whether the member has some of these partitions; without a report it is assumed to have them."""
    if owned is None:
        return True
    return any(partition in held.get(topic, ()) for topic, partitions in owned.items() for partition in partitions)


def _step(member: Member, step: Step, epoch: int, assigned: Held, revoking: Held) -> Member:
    return _moved(member, RECONCILIATION.following(member.state, step), epoch, assigned, revoking)


def _moved(member: Member, state: MemberState, epoch: int, assigned: Held, revoking: Held) -> Member:
    return msgspec.structs.replace(
        member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, revoking=revoking
    )
