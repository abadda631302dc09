"""One voter with its disk: the Raft library above, the metadata log and the hard state below.

Owns `__cluster_metadata-0`: one record batch per Raft entry, the batch's ordinal being the entry's index and its leader
epoch the entry's term; and the order of writing: hard state, then entries, then a sync, and only then does anything
count as committed. Must not know what records say. Its methods block on the disk; at most one runs at a time.

After a crash the log ends with the last whole batch. With one voter all of it is committed, because what the disk has
is what the majority has; entries that were never acknowledged may be among it, acknowledged ones always are. A hard
state older than the log (a crash or a restore between the two) is overruled by the log's last term.
"""

from __future__ import annotations

import logging
import time
from array import array
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import DIRECTORY_NAME, Batch
from pybroker.controller.quorum.hard_state import HardState, read_hard_state, write_hard_state
from pybroker.controller.quorum.native import (
    Log,
    Quorum,
    build_leader_change_batch,
    build_record_batch,
    parse_metadata_batches,
)
from pybroker.storage.exhaustion import is_exhaustion, limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pybroker.controller.quorum.native import QuorumReady
    from pybroker.controller.quorum.settings import QuorumSettings

log = logging.getLogger("pybroker.controller")

_ELECTION_TICKS = 10
_HEARTBEAT_TICKS = 2
_READ_BYTES = 1 << 20
_INDEX_BYTES = 1 << 16
_INDEX_INTERVAL_BYTES = 4096
_PATIENCE_S = 60.0  # so long a write waits for a descriptor or memory before the metadata log counts as failed
_AGAIN_S = 0.05

T = TypeVar("T")


class Voter:
    """The quorum of one, written so that others can join."""

    def __init__(self, settings: QuorumSettings, now_ms: Callable[[], int]) -> None:
        self._directory = settings.directory / DIRECTORY_NAME
        self._node_id = settings.node_id
        self._voters = list(settings.voters)
        self._now_ms = now_ms
        # Base offset of the batch of each entry: entry `index` is at `index - 1`.
        self._base_offsets = array("q")
        self._hard_state: HardState | None = None
        self._log: Log
        self._quorum: Quorum

    @classmethod
    def open(cls, settings: QuorumSettings, *, now_ms: Callable[[], int], replay: Callable[[Batch], None]) -> Voter:
        """Open or begin the log, and hand every batch that is known to be committed to `replay`.

        Raises `OSError`, `MetadataLogError`, `QuorumStateError` and `QuorumError`.
        """
        voter = cls(settings, now_ms)
        directory = voter._directory
        voter._log = Log.open(
            directory=str(directory),
            segment_bytes=settings.segment_bytes,
            segment_ms=settings.segment_ms,
            segment_index_bytes=_INDEX_BYTES,
            index_interval_bytes=_INDEX_INTERVAL_BYTES,
            now_ms=now_ms(),
        )
        if voter._log.truncated_bytes:
            log.warning("%s: %d bytes of unfinished writes were cut", directory, voter._log.truncated_bytes)
        try:
            voter._restore(replay)
        except BaseException:
            voter._log.close()
            raise
        return voter

    @property
    def is_leader(self) -> bool:
        """Whether this voter leads the quorum."""
        return self._quorum.is_leader

    @property
    def leader(self) -> int | None:
        """Node id of the voter that leads, as far as this one knows."""
        return self._quorum.leader

    @property
    def term(self) -> int:
        """The Raft term: the leader epoch of what is appended now."""
        return self._quorum.term

    @property
    def next_offset(self) -> int:
        """Offset that the next record will have."""
        return self._log.log_end_offset

    def campaign(self, values: list[bytes]) -> list[Batch]:
        """Stand for election and do the work of it; the only voter leads when this returns.

        `values` are the first records of the term, in the same write as its beginning.
        """
        self._quorum.campaign()
        if values and self._quorum.is_leader:
            self._quorum.propose(build_record_batch(values, self._now_ms()))
        return self._work()

    def commit(self, values: list[bytes]) -> list[Batch]:
        """Append records as one batch, and return what is committed, these records last.

        Raises `NotControllerError` when this voter does not lead, and `OSError`: the voter is not to be used then.
        """
        self._quorum.propose(build_record_batch(values, self._now_ms()))
        return self._work()

    def close(self) -> None:
        """Close the log; raises `OSError`."""
        self._log.close()

    def _work(self) -> list[Batch]:
        """Do what the quorum asks for until it asks for nothing."""
        committed: list[Batch] = []
        while (ready := self._quorum.ready()) is not None:
            self._persist(ready)
            committed += map(self._committed_batch, ready.committed)
            committed += map(self._committed_batch, self._quorum.advance().committed)
        return committed

    def _persist(self, ready: QuorumReady) -> None:
        if ready.hard_state is not None:
            self._write_hard_state(HardState(*ready.hard_state))
        entries = ready.entries
        if not entries:
            return
        first = entries[0][0]
        if first <= len(self._base_offsets):
            # A new leader overruled what an older one had not committed.
            self._log.truncate_to(self._base_offsets[first - 1], self._now_ms())
            del self._base_offsets[first - 1 :]
        for _, term, payload in entries:
            batch = payload or build_leader_change_batch(self._leader(), self._voters, self._now_ms())
            base_offset, _ = self._patiently(partial(self._log.append, batch, term, self._now_ms()))
            self._base_offsets.append(base_offset)
        self._patiently(self._log.flush)

    def _patiently(self, work: Callable[[], T]) -> T:
        """Do what changes nothing when it lacks a descriptor or memory, again and again until it finds one."""
        deadline = None
        while True:
            try:
                return work()
            except OSError as error:
                if not is_exhaustion(error):
                    raise
                if deadline is None:
                    deadline = time.monotonic() + _PATIENCE_S
                    log.error("the metadata log waits: %s; %s", error, limits())
                elif time.monotonic() > deadline:
                    raise
            time.sleep(_AGAIN_S)

    def _leader(self) -> int:
        leader = self._quorum.leader
        return self._node_id if leader is None else leader

    def _write_hard_state(self, state: HardState) -> None:
        # Commit indexes are part of the library's hard state and not of the file: only a new term or vote is written.
        if state != self._hard_state:
            write_hard_state(self._directory, state, self._quorum.leader, self._voters)
            self._hard_state = state

    def _committed_batch(self, entry: tuple[int, int, bytes]) -> Batch:
        index, term, payload = entry
        base_offset = self._base_offsets[index - 1]
        if not payload:
            return Batch(base_offset, term, ())
        [(_, last_offset, _, _, _, values)], _ = parse_metadata_batches(payload)
        return Batch(base_offset + last_offset, term, values)

    def _restore(self, replay: Callable[[Batch], None]) -> None:
        self._hard_state = read_hard_state(self._directory)
        alone = self._voters == [self._node_id]
        terms: list[tuple[int, int]] = []
        tail: list[tuple[int, int, bytes]] = []
        for base_offset, epoch, is_control, values in self._read():
            self._base_offsets.append(base_offset)
            index = len(self._base_offsets)
            if not terms or terms[-1][1] != epoch:
                terms.append((index, epoch))
            if alone:
                replay(Batch(base_offset + len(values) - 1, epoch, () if is_control else values))
            else:
                # What is committed of the log only a leader can say.
                tail.append((index, epoch, b"" if is_control else build_record_batch(list(values), self._now_ms())))
        last = len(self._base_offsets)
        self._quorum = Quorum(
            node_id=self._node_id,
            voters=self._voters,
            election_ticks=_ELECTION_TICKS,
            heartbeat_ticks=_HEARTBEAT_TICKS,
            hard_state=self._hard_state,
            terms=terms,
            last=last,
            replayed=last if alone else 0,
            tail=tail,
        )

    def _read(self) -> Iterator[tuple[int, int, bool, tuple[bytes, ...]]]:
        offset = self._log.log_start_offset
        while offset < self._log.log_end_offset:
            batches, _ = parse_metadata_batches(self._log.read(offset, _READ_BYTES))
            for base_offset, last_offset, epoch, _, is_control, values in batches:
                if base_offset != offset:
                    raise MetadataLogError(f"{self._directory}: offset {offset} is missing before {base_offset}")
                yield base_offset, epoch, is_control, values
                offset = last_offset + 1
