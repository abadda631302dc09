"""Roster: the members of a classic group as an immutable value, with counters that decisions read.

Owns the members, in the order of joining, assigned member ids that are not used yet, and the members without a
SyncGroup. Owns the counters of Kafka's `ClassicGroup` (`supportedProtocols`, `numMembersAwaitingJoinResponse`,
`staticMembers`). Decides nothing.

A version that differs from another one in one member costs one change, not a copy. All versions share one table, which
is in the state of the version that was read last. Each other version stores the changes that lead to its state (Baker,
"Shallow binding makes functional arrays fast", 1991). So 10,000 joins cost 10,000 changes, and a dropped decision
leaves the previous version unchanged. Used from one thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.coordinator.group.ids import InstanceId, MemberId


class ClassicMember(msgspec.Struct, frozen=True, kw_only=True):
    """One member."""

    id: MemberId
    instance_id: InstanceId | None = None
    """Set for a static member."""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Name and metadata, in order of preference."""
    assignment: bytes = b""
    awaiting_join: bool = False
    """Whether its JoinGroup is delayed."""
    awaiting_sync: bool = False
    """Whether its SyncGroup is delayed."""
    is_new: bool = False
    """True until its first rebalance ends. The session of such a member may expire while its JoinGroup is delayed."""

    def metadata(self, protocol: str) -> bytes:
        """Return its metadata for the protocol of that name; raises `KeyError` if it does not support it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise KeyError(protocol)


class Roster(Mapping["MemberId", ClassicMember]):
    """Members by id. A version is only modified between `fork` and `end`."""

    __slots__ = ("_after", "_before", "_members", "_table", "_undo")

    def __init__(self, members: Iterable[ClassicMember] = ()) -> None:
        """`members` is iterated on the first access: a group of a record is often replaced before."""
        self._members: Iterable[ClassicMember] | None = members
        # Invariant: not None for exactly one of the versions that share a table, unless none was accessed yet.
        self._table: _Table | None = None
        # Towards the version that has the table: its neighbour, and the changes that lead from there to this version,
        # the last one first.
        self._after: Roster | None = None
        self._undo: list[_Change] = []
        # The version that this one was forked from, while this one is modified. It has no other neighbour.
        self._before: Roster | None = None

    def fork(self) -> Roster:
        """Return the next version: equal to this one until it is modified."""
        table = self._take()
        fork = Roster.__new__(Roster)
        fork._members, fork._table, fork._after, fork._undo, fork._before = None, table, None, [], self
        self._table, self._after, self._undo, self._before = None, fork, [], None
        return fork

    def end(self) -> None:
        """Complete `fork`: this version is not modified any more."""
        self._before = None

    # Reading.

    def __getitem__(self, member_id: MemberId) -> ClassicMember:
        table = self._table or self._take()
        return table.members[table.ordinals[member_id]]

    def get(self, member_id: Any, default: Any = None) -> Any:
        """Return a member, or the default."""
        table = self._table or self._take()
        ordinal = table.ordinals.get(member_id)
        return default if ordinal is None else table.members[ordinal]

    def __contains__(self, member_id: object) -> bool:
        return member_id in (self._table or self._take()).ordinals

    def __len__(self) -> int:
        return len((self._table or self._take()).members)

    def __iter__(self) -> Iterator[MemberId]:
        return iter([member.id for member in self._take().in_order()])

    def in_order(self) -> list[ClassicMember]:
        """Return the members in the order of joining, as a list, so that changes during an iteration are safe."""
        return self._take().in_order()

    def first(self) -> ClassicMember | None:
        """Return the member that joined first."""
        return self._take().first()

    def static_member(self, instance_id: str) -> ClassicMember | None:
        """Return the member with that instance id."""
        table = self._table or self._take()
        ordinal = table.instances.get(instance_id)
        return None if ordinal is None else table.members[ordinal]

    def is_pending(self, member_id: str) -> bool:
        """Return whether the id was assigned and no member has joined with it yet (KIP-394)."""
        return member_id in (self._table or self._take()).pending_joins

    def is_to_sync(self, member_id: MemberId) -> bool:
        """Return whether a member of this generation has not sent a SyncGroup."""
        return member_id in self._take().pending_syncs

    @property
    def pending_joins(self) -> frozenset[MemberId]:
        """Assigned ids with which no member has joined yet."""
        return frozenset(self._take().pending_joins)

    @property
    def pending_syncs(self) -> frozenset[MemberId]:
        """Members of this generation that have not sent a SyncGroup."""
        return frozenset(self._take().pending_syncs)

    @property
    def all_have_synced(self) -> bool:
        """Whether every member of this generation has sent a SyncGroup."""
        return not self._take().pending_syncs

    @property
    def awaiting_joins(self) -> int:
        """Number of members whose JoinGroup is delayed."""
        return self._take().awaiting_joins

    @property
    def all_have_joined(self) -> bool:
        """Whether all members have joined."""
        table = self._take()
        return not table.pending_joins and table.awaiting_joins == len(table.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The maximum rebalance timeout of the members."""
        return max(self._take().timeouts, default=0)

    def supports_any(self, names: Iterable[str]) -> bool:
        """Return whether every member supports one of these protocols; true without members."""
        table = self._take()
        members = len(table.members)
        return any(table.known[name] == members for name in names)

    def votes(self) -> Counter[str]:
        """Count votes: each member votes for its first protocol that all support, if there is one."""
        table = self._take()
        members, votes = len(table.members), Counter[str]()
        for names, voters in table.lists.items():
            for name in names:
                if table.known[name] == members:
                    votes[name] += voters
                    break
        return votes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Roster) and self._state() == other._state()

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, _memo: Any) -> Roster:
        return self

    def _state(self) -> tuple[Any, ...]:
        """Return the whole state of this version: copies, as another version may be read next."""
        table = self._take()
        return table.in_order(), set(table.pending_joins), set(table.pending_syncs)

    # Writing.

    def put(self, member: ClassicMember) -> None:
        """Add a member at the end, or replace it in place."""
        table = self._take()
        self._write(table, _Change(_MEMBER, table.ordinal_of(member.id), member))

    def rename(self, member_id: MemberId, member: ClassicMember) -> None:
        """Replace a member by one with another id, which keeps its position."""
        table = self._take()
        self._write(table, _Change(_MEMBER, table.ordinals[member_id], member))

    def remove(self, member_id: str) -> None:
        """Remove a member, or an assigned id."""
        table = self._take()
        ordinal = table.ordinals.get(member_id)  # type: ignore[call-overload]
        if ordinal is not None:
            self._write(table, _Change(_MEMBER, ordinal, None))
        self.mark_joined(member_id)
        self.mark_synced(member_id)

    def expect_join(self, member_id: MemberId) -> None:
        """Record that an id was assigned."""
        self._write(self._take(), _Change(_JOIN, member_id, True))

    def mark_joined(self, member_id: str) -> None:
        """Record that an id is not pending any more."""
        self._write(self._take(), _Change(_JOIN, member_id, False))

    def expect_sync(self, member_id: MemberId) -> None:
        """Record that a member must send a SyncGroup."""
        self._write(self._take(), _Change(_SYNC, member_id, True))

    def mark_synced(self, member_id: str) -> None:
        """Record that a member has sent its SyncGroup, or is not waited for."""
        self._write(self._take(), _Change(_SYNC, member_id, False))

    def _write(self, table: _Table, change: _Change) -> None:
        inverse = table.swap(change)
        if inverse is not None and self._before is not None:
            self._before._undo.append(inverse)

    def _take(self) -> _Table:
        """Return the table, in the state of this version."""
        if self._table is not None:
            return self._table
        if self._members is not None:
            members, self._members = self._members, None
            built = self._table = _Table()
            for member in members:
                built.put(built.ordinal_of(member.id), member)
            return built
        way: list[Roster] = []
        version: Roster | None = self
        while version is not None:
            way.append(version)
            version = version._after
        # From the version that has the table to this one, step by step; every step reverses one link.
        for there, here in zip(reversed(way), way[-2::-1], strict=False):
            table = there._table
            assert table is not None, "the last version of the way has the table"
            back = [inverse for change in reversed(here._undo) if (inverse := table.swap(change)) is not None]
            there._table, there._after, there._undo = None, here, back
            here._table, here._after, here._undo = table, None, []
        assert self._table is not None
        return self._table


class _Change(NamedTuple):
    """A change of the table: its part, the key there, and the value."""

    part: int
    key: Any
    value: Any


_MEMBER, _JOIN, _SYNC = range(3)


class _Table:
    """The state that the versions of a roster share. Counters are derived from `members`; `swap` updates them."""

    __slots__ = (
        "awaiting_joins",
        "instances",
        "is_ordered",
        "known",
        "lists",
        "members",
        "next_ordinal",
        "ordinals",
        "pending_joins",
        "pending_syncs",
        "timeouts",
    )

    def __init__(self) -> None:
        # By ordinal, which increases with every new member; in that order if `is_ordered`.
        self.members: dict[int, ClassicMember] = {}
        self.is_ordered = True
        self.next_ordinal = 0
        self.ordinals: dict[MemberId, int] = {}
        self.instances: dict[str, int] = {}
        self.pending_joins: set[MemberId] = set()
        self.pending_syncs: set[MemberId] = set()
        self.awaiting_joins = 0
        # Number of members that support a protocol; have a list of protocols; have a rebalance timeout. No zero counts.
        self.known: Counter[str] = Counter()
        self.lists: Counter[tuple[str, ...]] = Counter()
        self.timeouts: Counter[int] = Counter()

    def swap(self, change: _Change) -> _Change | None:
        """Apply a change and return its inverse; None if it changes nothing."""
        part, key, value = change
        if part == _MEMBER:
            return _Change(part, key, self.put(key, value))
        pending = self.pending_joins if part == _JOIN else self.pending_syncs
        if (key in pending) is value:
            return None
        if value:
            pending.add(key)
        else:
            pending.remove(key)
        return _Change(part, key, not value)

    def in_order(self) -> list[ClassicMember]:
        """Return the members by ordinal."""
        if not self.is_ordered:
            self.members = dict(sorted(self.members.items()))
            self.is_ordered = True
        return list(self.members.values())

    def first(self) -> ClassicMember | None:
        """Return the member with the lowest ordinal."""
        if not self.is_ordered:
            self.in_order()
        return next(iter(self.members.values()), None)

    def ordinal_of(self, member_id: MemberId) -> int:
        """Return the ordinal of a member, or a new one for an unknown member."""
        ordinal = self.ordinals.get(member_id)
        if ordinal is None:
            ordinal, self.next_ordinal = self.next_ordinal, self.next_ordinal + 1
        return ordinal

    def put(self, ordinal: int, member: ClassicMember | None) -> ClassicMember | None:
        """Insert, replace or remove the member at an ordinal; returns the previous one."""
        before = self.members.get(ordinal)
        if before is not None and member is not None and _counts_alike(before, member):
            self.members[ordinal] = member
            self.awaiting_joins += member.awaiting_join - before.awaiting_join
            return before
        if before is not None:
            self._forget(ordinal, before)
        elif self.members and ordinal < next(reversed(self.members)):
            self.is_ordered = False  # A member that returns to its previous position.
        if member is None:
            self.members.pop(ordinal, None)
            return before
        self.members[ordinal] = member
        self.ordinals[member.id] = ordinal
        if member.instance_id is not None:
            self.instances.setdefault(member.instance_id, ordinal)
        self.awaiting_joins += member.awaiting_join
        self._count(member, 1)
        return before

    def _forget(self, ordinal: int, before: ClassicMember) -> None:
        if self.ordinals.get(before.id) == ordinal:
            del self.ordinals[before.id]
        if before.instance_id is not None and self.instances.get(before.instance_id) == ordinal:
            del self.instances[before.instance_id]
        self.awaiting_joins -= before.awaiting_join
        self._count(before, -1)

    def _count(self, member: ClassicMember, by: int) -> None:
        _add(self.timeouts, member.rebalance_timeout_ms, by)
        names = tuple(name for name, _ in member.protocols)
        _add(self.lists, names, by)
        for name in dict.fromkeys(names):
            _add(self.known, name, by)


def _counts_alike(one: ClassicMember, other: ClassicMember) -> bool:
    return (
        one.protocols is other.protocols
        and one.id == other.id
        and one.instance_id == other.instance_id
        and one.rebalance_timeout_ms == other.rebalance_timeout_ms
    )


def _add(counter: Counter[Any], key: Any, by: int) -> None:
    count = counter[key] + by
    if count:
        counter[key] = count
    else:
        del counter[key]
