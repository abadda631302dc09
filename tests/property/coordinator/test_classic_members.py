"""Members of a classic group: whatever is forked, written and read, in whatever order, each version stays as it is."""

from __future__ import annotations

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pybroker.coordinator.group.classic.members import ClassicMember, ClassicMembers
from pybroker.coordinator.group.ids import InstanceId, MemberId

LISTS = [("range",), ("range", "sticky"), ("sticky", "range"), ("other",)]
NAMES = ("range", "sticky", "other")

steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "change", "rename", "remove", "expect join", "expect sync", "synced"]),
        st.integers(0, 5),
        st.integers(0, 1 << 10),
        st.integers(0, 1 << 10),
    ),
    max_size=40,
)


class Twin(msgspec.Struct, frozen=True):
    """The same, by copies."""

    members: tuple[ClassicMember, ...] = ()
    pending_joins: frozenset[MemberId] = frozenset()
    pending_syncs: frozenset[MemberId] = frozenset()


def member(member_id: MemberId, number: int) -> ClassicMember:
    return ClassicMember(
        id=member_id,
        instance_id=InstanceId(f"i-{member_id}") if number % 3 == 0 else None,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=number % 4,
        session_timeout_ms=1,
        protocols=tuple((name, b"") for name in LISTS[number % len(LISTS)]),
        awaiting_join=number % 2 == 0,
    )


def step(values: ClassicMembers, twin: Twin, what: str, which: int, number: int) -> tuple[ClassicMembers, Twin]:
    fork = values.fork()
    member_id = MemberId(f"m{which}")
    members = {one.id: one for one in twin.members}
    joins, syncs = set(twin.pending_joins), set(twin.pending_syncs)
    match what:
        case "put":
            members[member_id] = member(member_id, number)
            fork.put(members[member_id])
        case "change" if member_id in members:
            members[member_id] = msgspec.structs.replace(members[member_id], awaiting_join=number % 2 == 0)
            fork.put(members[member_id])
        case "rename" if member_id in members and f"r{number}" not in members:
            renamed = member(MemberId(f"r{number}"), number)
            members = {one.id: one for one in (renamed if one.id == member_id else one for one in twin.members)}
            fork.rename(member_id, renamed)
        case "remove":
            members.pop(member_id, None)
            joins.discard(member_id)
            syncs.discard(member_id)
            fork.remove(member_id)
        case "expect join":
            joins.add(member_id)
            fork.expect_join(member_id)
        case "expect sync":
            syncs.add(member_id)
            fork.expect_sync(member_id)
        case "synced":
            syncs.discard(member_id)
            fork.mark_synced(member_id)
    return fork, Twin(tuple(members.values()), frozenset(joins), frozenset(syncs))


def seen(values: ClassicMembers) -> tuple[object, ...]:
    """Return all that can be read of the members."""
    return (
        values.in_order(),
        list(values),
        values.pending_joins,
        values.pending_syncs,
        values.awaiting_joins,
        values.all_have_joined,
        values.rebalance_timeout_ms,
        [values.supports_any([name]) for name in NAMES],
        values.votes(),
        [(values[one.id], one.instance_id and values.static_member(one.instance_id)) for one in values.in_order()],
    )


def counted(twin: Twin) -> tuple[object, ...]:
    """The same, counted over all members."""
    waiting = sum(one.awaiting_join for one in twin.members)
    known = Counter(name for one in twin.members for name, _ in one.protocols)
    common = {name for name, count in known.items() if count == len(twin.members)}
    wanted = [next((name for name, _ in one.protocols if name in common), None) for one in twin.members]
    return (
        list(twin.members),
        [one.id for one in twin.members],
        twin.pending_joins,
        twin.pending_syncs,
        waiting,
        not twin.pending_joins and waiting == len(twin.members),
        max((one.rebalance_timeout_ms for one in twin.members), default=0),
        [known[name] == len(twin.members) for name in NAMES],
        Counter(name for name in wanted if name is not None),
        [(one, one.instance_id and one) for one in twin.members],
    )


@settings(max_examples=200, deadline=None)
@given(steps)
def test_every_version_stays_what_it_is(taken: list[tuple[str, int, int, int]]) -> None:
    versions = [(ClassicMembers(), Twin())]
    for what, which, number, origin in taken:
        # Most are forked from the last one, as decisions are; some from an older one, as after a dropped decision.
        versions.append(step(*versions[-1 if origin % 4 else origin % len(versions)], what, which, number))
        values, twin = versions[number % len(versions)]
        assert seen(values) == counted(twin)
    for values, twin in versions:
        assert seen(values) == counted(twin)
