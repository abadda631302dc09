"""Roster: the members of a classic group as an immutable value, and the counts that decisions ask for.

Owns who is in the group, in the order of their coming; which ids were given out and not used yet; who has not asked for
its assignment; and what is counted over all of them, as Kafka's `ClassicGroup` counts (`supportedProtocols`,
`numMembersAwaitingJoinResponse`, `staticMembers`). Decides nothing.

A roster that differs from another in one member costs one change, not a copy: all versions share one table, which is in
the state of the version that was read last, and each other version holds what to change to come to it (Baker, "Shallow
binding makes functional arrays fast", 1991). So 10,000 members join at the cost of 10,000 changes, and a decision that
is dropped leaves the version before it as it was. Used from one thread.
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
    """Name and metadata, the best first."""
    assignment: bytes = b""
    awaiting_join: bool = False
    """Whether the reply to its JoinGroup is parked."""
    awaiting_sync: bool = False
    """Whether the reply to its SyncGroup is parked."""
    is_new: bool = False
    """Until its first rebalance ends. The session of such a member ends although it waits for its reply."""

    def metadata(self, protocol: str) -> bytes:
        """Return its metadata for the assignor of that name; raises `KeyError` when it does not know it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise KeyError(protocol)


class Roster(Mapping["MemberId", ClassicMember]):
    """Members by id. A version is written between `fork` and `end`, and never later."""

    __slots__ = ("_after", "_before", "_members", "_table", "_undo")

    def __init__(self, members: Iterable[ClassicMember] = ()) -> None:
        """`members` is read when a caller requests one: a group that a record makes is often replaced before."""
        self._members: Iterable[ClassicMember] | None = members
        # Invariant: not None for exactly one of the versions that share a table, unless nobody has asked yet.
        self._table: _Table | None = None
        # Towards the version that has the table: its neighbour, and the changes that lead from there to here, the last
        # one first.
        self._after: Roster | None = None
        self._undo: list[_Change] = []
        # The version that this one was forked from while this one is written, the only one whose neighbour it is.
        self._before: Roster | None = None

    def fork(self) -> Roster:
        """Return the version that follows this one: equal to it, until it is written."""
        table = self._take()
        fork = Roster.__new__(Roster)
        fork._members, fork._table, fork._after, fork._undo, fork._before = None, table, None, [], self
        self._table, self._after, self._undo, self._before = None, fork, [], None
        return fork

    def end(self) -> None:
        """End what `fork` began: this version is not written any more."""
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
        """Return the members, those who came first before the others: a list, so that a change meanwhile is no harm."""
        return self._take().in_order()

    def first(self) -> ClassicMember | None:
        """Return the member that has been there longest."""
        return self._take().first()

    def static_member(self, instance_id: str) -> ClassicMember | None:
        """Return the member of that instance id."""
        table = self._table or self._take()
        ordinal = table.instances.get(instance_id)
        return None if ordinal is None else table.members[ordinal]

    def is_pending(self, member_id: str) -> bool:
        """Return whether the id was given out and nobody has joined with it yet (KIP-394)."""
        return member_id in (self._table or self._take()).pending_joins

    def is_to_sync(self, member_id: MemberId) -> bool:
        """Return whether a member of this generation has not asked for its assignment."""
        return member_id in self._take().pending_syncs

    @property
    def pending_joins(self) -> frozenset[MemberId]:
        """Ids that were given out and with which nobody has joined yet."""
        return frozenset(self._take().pending_joins)

    @property
    def pending_syncs(self) -> frozenset[MemberId]:
        """Members of this generation that have not asked for their assignment."""
        return frozenset(self._take().pending_syncs)

    @property
    def all_have_synced(self) -> bool:
        """Whether every member of this generation has asked for its assignment."""
        return not self._take().pending_syncs

    @property
    def awaiting_joins(self) -> int:
        """How many members wait for the rebalance to end."""
        return self._take().awaiting_joins

    @property
    def all_have_joined(self) -> bool:
        """Whether nobody is missing."""
        table = self._take()
        return not table.pending_joins and table.awaiting_joins == len(table.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the slowest member may take to join again."""
        return max(self._take().timeouts, default=0)

    def supports_any(self, names: Iterable[str]) -> bool:
        """Return whether every member knows one of these protocols; nobody disagrees where there is no member."""
        table = self._take()
        members = len(table.members)
        return any(table.known[name] == members for name in names)

    def votes(self) -> Counter[str]:
        """Count votes: each member is for the first of its protocols that all know; those without one do not vote."""
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
        """Return all that makes it this version: copies, as another version may be read next."""
        table = self._take()
        return table.in_order(), set(table.pending_joins), set(table.pending_syncs)

    # Writing.

    def put(self, member: ClassicMember) -> None:
        """Add a member behind the others, or replace it where it is."""
        table = self._take()
        self._write(table, _Change(_MEMBER, table.ordinal_of(member.id), member))

    def rename(self, member_id: MemberId, member: ClassicMember) -> None:
        """Replace a member by one of another id, which has its rank."""
        table = self._take()
        self._write(table, _Change(_MEMBER, table.ordinals[member_id], member))

    def remove(self, member_id: str) -> None:
        """Remove a member, or an id that was given out."""
        table = self._take()
        ordinal = table.ordinals.get(member_id)  # type: ignore[call-overload]
        if ordinal is not None:
            self._write(table, _Change(_MEMBER, ordinal, None))
        self.mark_joined(member_id)
        self.mark_synced(member_id)

    def expect_join(self, member_id: MemberId) -> None:
        """Take note that an id was given out."""
        self._write(self._take(), _Change(_JOIN, member_id, True))

    def mark_joined(self, member_id: str) -> None:
        """Take note that an id is not awaited any more."""
        self._write(self._take(), _Change(_JOIN, member_id, False))

    def expect_sync(self, member_id: MemberId) -> None:
        """Take note that a member is to ask for its assignment."""
        self._write(self._take(), _Change(_SYNC, member_id, True))

    def mark_synced(self, member_id: str) -> None:
        """Take note that a member is not waited for any more."""
        self._write(self._take(), _Change(_SYNC, member_id, False))

    def _write(self, table: _Table, change: _Change) -> None:
        inverse = table.swap(change)
        if inverse is not None and self._before is not None:
            self._before._undo.append(inverse)

    def _take(self) -> _Table:
        """Return the table in the state of this version."""
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
        # From the version that has it to this one, step by step; every step turns the way back.
        for there, here in zip(reversed(way), way[-2::-1], strict=False):
            table = there._table
            assert table is not None, "the last version of the way has the table"
            back = [inverse for change in reversed(here._undo) if (inverse := table.swap(change)) is not None]
            there._table, there._after, there._undo = None, here, back
            here._table, here._after, here._undo = table, None, []
        assert self._table is not None
        return self._table


class _Change(NamedTuple):
    """Something to put into the table: its part, the key there, and the value."""

    part: int
    key: Any
    value: Any


_MEMBER, _JOIN, _SYNC = range(3)


class _Table:
    """What the versions of a roster share. Every count follows from `members`, and `swap` keeps it so."""

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
        # By ordinal, which grows with every member that comes; in that order if `is_ordered`.
        self.members: dict[int, ClassicMember] = {}
        self.is_ordered = True
        self.next_ordinal = 0
        self.ordinals: dict[MemberId, int] = {}
        self.instances: dict[str, int] = {}
        self.pending_joins: set[MemberId] = set()
        self.pending_syncs: set[MemberId] = set()
        self.awaiting_joins = 0
        # How many members know a protocol; have a list of protocols; wait so long in a rebalance. Nothing counts 0.
        self.known: Counter[str] = Counter()
        self.lists: Counter[tuple[str, ...]] = Counter()
        self.timeouts: Counter[int] = Counter()

    def swap(self, change: _Change) -> _Change | None:
        """Make a change and return the one that undoes it; None if it changes nothing."""
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
        """Return the member of the least ordinal."""
        if not self.is_ordered:
            self.in_order()
        return next(iter(self.members.values()), None)

    def ordinal_of(self, member_id: MemberId) -> int:
        """Return the ordinal of a member, a new one where it is not there."""
        ordinal = self.ordinals.get(member_id)
        if ordinal is None:
            ordinal, self.next_ordinal = self.next_ordinal, self.next_ordinal + 1
        return ordinal

    def put(self, ordinal: int, member: ClassicMember | None) -> ClassicMember | None:
        """Put a member where another may be, or take that out; returns the other one."""
        before = self.members.get(ordinal)
        if before is not None and member is not None and _counts_alike(before, member):
            self.members[ordinal] = member
            self.awaiting_joins += member.awaiting_join - before.awaiting_join
            return before
        if before is not None:
            self._forget(ordinal, before)
        elif self.members and ordinal < next(reversed(self.members)):
            self.is_ordered = False  # A member that comes back where it was.
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
