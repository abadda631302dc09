"""One voter: connects the Raft library, the log, and the mapping between entries and offsets.

Owns this mapping: an entry is a record batch, and its index is the batch's ordinal number from 1. The writes of a step
are returned as a `Writing`; this module never waits for them, so several may be in progress. Must not know the content
of records, nor the transport of messages; time is an argument.

A restored log of a single voter is committed completely, because its disk is the majority. With several voters only
the content of a snapshot is committed: the rest waits for a leader. If the hard state is older than the log (after a
crash or a restore between the two writes), the log's last term replaces it.

A change of voters is in force once it is committed. After a restart the last change in the log may be uncommitted. The
earlier ones are committed, as no leader proposes a change before the previous one is in force. A change that
`quorum-state` records as final is committed too (docs/adr/0049). A replica that is not a voter also follows the log,
and grants votes.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import Batch
from pybroker.controller.quorum.log.hard_state import HardState
from pybroker.controller.quorum.log.log_position import LogPosition, read_position
from pybroker.controller.quorum.log.losses import Losses, find_lost
from pybroker.controller.quorum.log.metadata_log import MetadataLog, Writing, split
from pybroker.controller.quorum.native import Quorum, build_record_batch, parse_metadata_batches
from pybroker.controller.quorum.snapshot.snapshot_place import continues
from pybroker.controller.quorum.snapshot.snapshots import SnapshotId
from pybroker.controller.quorum.voters.control_records import build_voters, read_voters
from pybroker.controller.quorum.voters.voter_set import key_of, node_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pybroker.controller.quorum.log.metadata_log import StoredBatch
    from pybroker.controller.quorum.native import QuorumReady
    from pybroker.controller.quorum.settings import QuorumSettings
    from pybroker.controller.quorum.voters.voter_set import VoterSet

log = logging.getLogger("pybroker.controller")

ELECTION_TICKS = 10
"""Election timeout in ticks; randomized up to twice as many."""
_HEARTBEAT_TICKS = 2
_MESSAGE_BYTES = 1 << 20
_MESSAGES_IN_FLIGHT = 32
_KEPT_BYTES = 8 << 20
# No follower lags behind a sole voter; a voter that joins reads missing entries from the log on disk.
_KEPT_ALONE_BYTES = 1 << 18
# Position of the last offset delta in a batch.
_LAST_OFFSET_DELTA = slice(23, 27)


class Change(msgspec.Struct, frozen=True):
    """A change of voters in the log."""

    raft_index: int
    end_offset: int
    voters: VoterSet


class Committed(msgspec.Struct, frozen=True):
    """A committed entry with its encoded batch."""

    raft_index: int
    term: int
    last_offset: int
    payload: bytes

    def batch(self) -> Batch:
        """Decode the records."""
        [(_, _, _, _, is_control, values)], _ = parse_metadata_batches(self.payload)
        return Batch(self.last_offset, self.term, () if is_control else values)


class Step(msgspec.Struct, frozen=True):
    """The work of one step: messages to send, writes, and commits to apply."""

    messages: Sequence[tuple[int, bytes]]
    """To other replicas, to be sent at once."""
    writing: Writing
    committed: Sequence[Committed]
    changes_voters: bool
    """Whether the voter set in force has changed."""


class SnapshotMark(msgspec.Struct, frozen=True):
    """A snapshot and its position in the Raft log."""

    raft_index: int
    """Index of the last entry in the snapshot."""
    id: SnapshotId

    def to_native(self) -> tuple[int, int, bytes]:
        """Return the form that the extension uses."""
        end_offset, epoch = self.id
        return self.raft_index, epoch, end_offset.to_bytes(8) + epoch.to_bytes(4)

    @classmethod
    def from_native(cls, mark: tuple[int, int, bytes]) -> SnapshotMark:
        """Return the mark for a value of the extension."""
        index, _, raw = mark
        return cls(index, SnapshotId(int.from_bytes(raw[:8]), int.from_bytes(raw[8:])))


def read_entries(log: MetadataLog, index: int, offset: int) -> list[tuple[int, int, bytes]]:
    """Read entries for `Voter.provide`, the first of which begins at `offset`; empty if the log has deleted them.

    Blocks on the disk; raises `OSError` and `MetadataLogError`.
    """
    if not log.start_offset <= offset < log.end_offset:
        return []
    batches = split(log.read(offset, _MESSAGE_BYTES))
    return [(number, batch.epoch, batch.payload) for number, batch in enumerate(batches, index)]


def _replay(batch: StoredBatch, replay: Callable[[Batch], None]) -> None:
    replay(Batch(batch.last_offset, batch.epoch, () if batch.is_control else batch.values))


class Voter:
    """A replica of the log, which may be a voter of the quorum. No method but `open` does I/O."""

    def __init__(self, settings: QuorumSettings, log: MetadataLog, now_ms: Callable[[], int]) -> None:
        self.log = log
        """The log's files; the driver writes them."""
        self._settings = settings
        self._now_ms = now_ms
        # Invariant: the entry `_first + i` ends at offset `_ends[i]`, exclusive; the first entry begins at `_start`.
        self._first = 1
        self._start = 0
        self._ends = array("q")
        self.applied = 0
        """Index of the last entry that was restored as committed, before the first step."""
        self.installed: SnapshotMark | None = None
        """The last snapshot from a leader that replaced the log."""
        self.voters = settings.configured
        """The voter set of the last committed change."""
        self.is_dynamic = not settings.voters
        """Whether the log contains the voter set (kraft.version 1), or there is no voter set yet."""
        self.names_voters = False
        """Whether a committed entry of the log, or a snapshot from a leader, contains the voter set."""
        self._offered_voters: VoterSet | None = None
        # The content of `quorum-state`, or of its pending write.
        self._hard_state = HardState(0, None)
        # The newest term whose leader is in `quorum-state`, or in its pending write.
        self._named_term = -1
        # Epoch of the last entry, persisted or not; 0 before the first.
        self._last_epoch = 0
        self._losses = Losses()
        self._quorum: Quorum

    @classmethod
    def open(
        cls,
        settings: QuorumSettings,
        *,
        now_ms: Callable[[], int],
        replay: Callable[[Batch], None],
        snapshot: SnapshotMark | None = None,
        voters: VoterSet | None = None,
    ) -> Voter:
        """Open or create the log, and pass to `replay` every batch after `snapshot` that is known to be committed.

        `voters` is the voter set of the newest snapshot, which may be the one that a node was formatted with.

        Raises `OSError`, `MetadataLogError`, `QuorumStateError` and `QuorumError`.
        """
        voter = cls(settings, MetadataLog(settings, now_ms), now_ms)
        try:
            voter._restore(replay, snapshot, voters)
        except BaseException:
            voter.log.close()
            raise
        return voter

    @property
    def is_leader(self) -> bool:
        """Whether this voter leads the quorum."""
        return self._quorum.is_leader

    @property
    def key(self) -> int:
        """The key of this replica."""
        settings = self._settings
        return key_of(settings.node_id, settings.directory_id) if self.is_dynamic else settings.node_id

    @property
    def votes(self) -> bool:
        """Whether this replica is one of the voters."""
        return self._quorum.votes

    @property
    def is_alone(self) -> bool:
        """Whether this replica is the whole quorum."""
        return self.voters.keys == (self.key,)

    @property
    def leader_key(self) -> int | None:
        """Key of the leader, as far as this replica knows it."""
        return self._quorum.leader

    @property
    def leader(self) -> int | None:
        """Node id of the leader, as far as this replica knows it."""
        key = self._quorum.leader
        return None if key is None else node_of(key)

    @property
    def term(self) -> int:
        """The Raft term: the leader epoch of new entries."""
        return self._quorum.term

    @property
    def last_index(self) -> int:
        """Index of the last entry, persisted or not."""
        return self._quorum.last_index

    @property
    def next_offset(self) -> int:
        """Offset of the next record."""
        return self._ends[-1] if self._ends else self._start

    @property
    def wanted(self) -> int | None:
        """Index of an entry that a lagging voter needs, to be read from the disk and passed to `provide`."""
        return self._quorum.wanted

    def end_of(self, index: int) -> int:
        """Return the offset after an entry, or the log start for entries before the log."""
        return self._ends[index - self._first] if index >= self._first else self._start

    def progress(self) -> list[tuple[int, int, int]]:
        """Return key, matched index and its end offset of each replica that gets the log; empty for a follower."""
        return [
            (key, matched, self.end_of(min(matched, self._first + len(self._ends) - 1)))
            for key, matched in self._quorum.progress()
        ]

    def tick(self) -> None:
        """Advance the clock by one tick."""
        self._quorum.tick(self._now_ms())

    def campaign(self) -> None:
        """Start an election."""
        self._quorum.campaign(self._now_ms())

    def forget_leader(self) -> None:
        """Forget the leader: its process has ended."""
        self._quorum.forget_leader()

    def transfer_leader(self, voter: int) -> None:
        """Transfer the leadership to another voter."""
        self._quorum.transfer_leader(voter)

    def unreachable(self, voter: int) -> None:
        """Report that messages to another voter may be lost."""
        self._quorum.unreachable(voter)

    def take(self, voter: int, message: bytes) -> SnapshotMark | None:
        """Process another voter's message; raises `QuorumError` for an invalid one, and changes nothing then.

        A returned snapshot must be fetched from the leader, and then `install`ed or `decline`d.
        """
        offered = self._quorum.step(voter, message, self._now_ms())
        self._losses.follow(self._quorum, self.end_of)
        return None if offered is None else SnapshotMark.from_native(offered)

    def install(self, snapshot: SnapshotMark, voters: VoterSet | None = None) -> None:
        """Install a fetched snapshot that a leader offered, with the voter set in it."""
        self._offered_voters = voters
        if voters is not None and not self.is_dynamic:
            # The snapshot contains the other voters; voters that already have it know this replica by its new key.
            self._quorum.change_voters(list(self.voters.keys), self._names_itself())
        self._quorum.install(snapshot.to_native(), list((voters or self.voters).keys))

    def decline(self) -> None:
        """Decline a snapshot that a leader offered and that cannot be fetched now."""
        self._quorum.decline()

    def propose(self, values: Sequence[bytes]) -> int:
        """Append records as one batch and return its index; raises `NotControllerError` if this voter does not lead.

        They are committed once `step` returns them as committed, and never if another leader overwrites them.
        """
        return self._quorum.propose(build_record_batch(list(values), self._now_ms()))

    def propose_voters(self, voters: VoterSet) -> int:
        """Append a change of voters and return its index; raises `NotControllerError` and `QuorumError`.

        One at a time: the previous change must be in force.
        """
        return self._quorum.propose(build_voters(voters, self._now_ms(), is_first=not self.names_voters))

    def add_learner(self, key: int) -> None:
        """Start sending the log to a replica that does not vote, while this voter leads."""
        self._quorum.set_learner(key, True)

    def remove_learner(self, key: int) -> None:
        """Stop sending the log to a replica that does not vote."""
        self._quorum.set_learner(key, False)

    def resign(self) -> None:
        """Resign as leader."""
        self._quorum.resign()

    def step(self) -> Step | None:
        """Return the next step, None for none. Its commits must be applied before the next call."""
        ready = self._quorum.ready()
        if ready is None:
            return None
        writing = self._writing(ready)
        committed = [
            Committed(index, term, self.end_of(index) - 1, payload) for index, term, payload in ready.committed
        ]
        changes = [(entry, voters) for entry in committed if (voters := read_voters(entry.payload)) is not None]
        for entry, voters in changes:
            renamed = [] if self.is_dynamic else [*self._names_others(voters), *self._names_itself()]
            self._quorum.change_voters(list(voters.keys), renamed)
            self.voters, self.names_voters = voters, True
            self._hard_state = self._hard_state._replace(voters_offset=entry.last_offset + 1)
        if changes:
            writing = writing._replace(hard_state=self._hard_state, voters=self.voters.node_ids)
        return Step(ready.messages, writing, committed, bool(changes) or writing.restart_at is not None)

    def persisted(self, number: int) -> None:
        """Report that the writes up to this number are on the device."""
        self._quorum.persisted(number)
        self._losses.follow(self._quorum, self.end_of)

    def provide(self, index: int, entries: list[tuple[int, int, bytes]]) -> None:
        """Provide the entries that a lagging voter needs, read from the disk; empty if they are deleted."""
        self._quorum.provide(index, entries)

    def set_snapshot(self, snapshot: SnapshotMark) -> None:
        """Set the snapshot that is sent to voters whose next entries are deleted from the log."""
        self._quorum.set_snapshot(snapshot.to_native())

    def forget_before(self, offset: int) -> None:
        """Record that the log starts at an offset, if an entry ends there; an older offset changes nothing."""
        count = bisect_left(self._ends, offset) + 1
        if self._start < offset <= self.next_offset and self._ends[count - 1] == offset:
            self._quorum.forget_before(self._first + count - 1)
            self._start = offset
            self._first += count
            del self._ends[:count]

    def _names_itself(self) -> list[tuple[int, int]]:
        """Record that the log contains the voter set, and return this replica's key before and after."""
        self.is_dynamic = True
        return [(self._settings.node_id, self.key)]

    def _names_others(self, voters: VoterSet) -> list[tuple[int, int]]:
        """Return the keys, before and after, of the other voters in the configuration."""
        own = self._settings.node_id
        return [(one.node_id, one.key) for one in voters.voters if one.node_id != own and self.voters.has(one.node_id)]

    def _writing(self, ready: QuorumReady) -> Writing:
        restart_at = None
        if ready.snapshot is not None:
            mark = SnapshotMark.from_native(ready.snapshot)
            self.installed = mark
            restart_at = self._start = mark.id.end_offset
            if self._offered_voters is not None:
                self.voters, self.names_voters = self._offered_voters, True
            self._first, self._last_epoch = mark.raft_index + 1, mark.id.epoch
            del self._ends[:]
        cut_at = None
        entries = ready.entries
        if entries and entries[0][0] < self._first + len(self._ends):
            # A new leader overwrites uncommitted entries of an earlier one.
            place = entries[0][0] - self._first
            cut_at = self._ends[place - 1] if place else self._start
            del self._ends[place:]
        for _, self._last_epoch, payload in entries:
            self._ends.append(self.next_offset + int.from_bytes(payload[_LAST_OFFSET_DELTA]) + 1)
        if ready.hard_state is not None:
            self._hard_state = HardState(*ready.hard_state, self._hard_state.voters_offset)
        # If Kafka uses this directory next, it takes a voter that voted for itself, without a leader, for a candidate,
        # and exits because of entries of that term (its `QuorumState.initialize`).
        names = bool(entries) and self._hard_state.vote == self.key and self._named_term < self.term
        ends = LogPosition(self._hard_state.term, self._last_epoch, self._first + len(self._ends) - 1, self.next_offset)
        is_written, leader = ready.hard_state is not None or names, self.leader
        if is_written and leader is not None:
            self._named_term = self.term
        return Writing(
            number=ready.number,
            restart_at=restart_at,
            hard_state=self._hard_state if is_written else None,
            leader=leader,
            voters=self.voters.node_ids,
            cut_at=cut_at,
            entries=[(term, payload) for _, term, payload in entries],
            messages=ready.persisted_messages,
            position=ends if self._losses.awaited is None else None,
        )

    def _restore(self, replay: Callable[[Batch], None], snapshot: SnapshotMark | None, named: VoterSet | None) -> None:
        if named is not None:
            self.voters, self.is_dynamic = named, True
            self.names_voters = snapshot is not None
        self._hard_state = self.log.hard_state() or self._hard_state
        terms: list[tuple[int, int]] = []
        entries: list[StoredBatch] = []
        changes: list[Change] = []
        first = 1 if snapshot is None else snapshot.raft_index + 1
        for number, batch in enumerate(self._after(snapshot), first):
            self._ends.append(batch.last_offset + 1)
            if not terms or terms[-1][1] != batch.epoch:
                terms.append((number, batch.epoch))
            if batch.is_control and (voters := read_voters(batch.payload)) is not None:
                changes.append(Change(number, batch.last_offset + 1, voters))
            if changes or self.is_dynamic or not self.is_alone:
                entries.append(batch)
            else:
                _replay(batch, replay)
        before = self._first - 1
        last = before + len(self._ends)
        self.applied = self._complete(changes, before, last)
        count = max(len(entries) - (last - self.applied), 0)
        for batch in entries[:count]:
            _replay(batch, replay)
        tail = [(number, batch.epoch, batch.payload) for number, batch in enumerate(entries[count:], self.applied + 1)]
        self._last_epoch = terms[-1][1] if terms else 0 if snapshot is None else snapshot.id.epoch
        lost = self._find_lost()
        self._quorum = Quorum(
            key=self.key,
            voters=list(self.voters.keys),
            is_open=self.is_dynamic,
            election_ticks=ELECTION_TICKS,
            heartbeat_ticks=_HEARTBEAT_TICKS,
            message_bytes=_MESSAGE_BYTES,
            messages_in_flight=_MESSAGES_IN_FLIGHT,
            kept_bytes=_KEPT_ALONE_BYTES if self.is_alone else _KEPT_BYTES,
            hard_state=self._hard_state[:2],
            before=(0, 0) if snapshot is None else (snapshot.raft_index, snapshot.id.epoch),
            snapshot=None if snapshot is None else snapshot.to_native(),
            terms=terms,
            last=last,
            replayed=self.applied,
            tail=tail,
            awaited=(lost.raft_index, lost.epoch),
        )
        self._losses.awaited, _ = self._quorum.take_losses()

    def _find_lost(self) -> LogPosition:
        """Return the position that the log has lost. If `quorum-state` is lost, prevent a second vote in its term."""
        position = read_position(self._settings.directory)
        if position.term > self._hard_state.term:
            self._hard_state = self._hard_state._replace(term=position.term, vote=self.key)
        if self.is_alone:
            return LogPosition()
        return find_lost(self._settings.directory, position, self._last_epoch, self.next_offset)

    def _complete(self, changes: Sequence[Change], before: int, last: int) -> int:
        """Apply the committed voter sets, and return the index of the last committed entry."""
        final = sum(change.end_offset <= self._hard_state.voters_offset for change in changes)
        completed = max(final, len(changes) - 1, 0)
        if completed:
            self._name(changes[completed - 1].voters)
        if completed < len(changes) and self.is_alone:
            self._name(changes[completed].voters)  # the entries on this disk are those of the majority
            completed += 1
        if self.is_alone:
            return last
        return changes[completed - 1].raft_index if completed else before

    def _name(self, voters: VoterSet) -> None:
        self.voters, self.names_voters, self.is_dynamic = voters, True, True

    def _after(self, snapshot: SnapshotMark | None) -> Iterator[StoredBatch]:
        """Read the batches after a snapshot, and set the index and offset of the first one."""
        if snapshot is not None:
            self._first, self._start = snapshot.raft_index + 1, snapshot.id.end_offset
        if self.log.start_offset > self._start:
            raise MetadataLogError(
                f"{self.log.directory}: the log begins at offset {self.log.start_offset}, and the newest snapshot ends "
                f"at {self._start}: restore the snapshot that contains the records between them"
            )
        if snapshot is not None and not continues(self.log, snapshot.id, is_alone=self.is_alone):
            # The process ended after a leader's snapshot was fetched and before the log was restarted after it.
            log.warning("%s: removing the log that the snapshot at offset %d replaces", self.log.directory, self._start)
            self.log.restart_at(self._start)
        for batch in self.log.scan():
            if batch.base_offset >= self._start:
                yield batch
