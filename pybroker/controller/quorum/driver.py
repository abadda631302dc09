"""A voter in motion: what its steps ask for is written by a thread, sent to the others, and applied here.

Owns the order. Messages that may go at once do; those that wait for the disk are sent when it is done. One write is
under way, and all that comes meanwhile is the next one, with one sync. What is committed is applied in the order of the
log, and the caller that proposed it is answered after that. Owns the clock's ticks too, and the short way to an
election: a voter that knows no leader and reaches a majority stands for election within milliseconds (ADR 0039). Must
not know what records say.

A proposal fails with `NotControllerError` when this voter stops leading before it is committed: another leader may
still commit it. A write that fails ends everything: what of it reached the disk is known only after a restart.
"""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.controller.errors import ControllerError, NotControllerError
from pybroker.controller.quorum.peers import PeerEvents, Peers
from pybroker.controller.quorum.voter import ELECTION_TICKS, Committed, SnapshotMark, Voter, read_entries
from pybroker.metadata.errors import MetadataError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from concurrent.futures import Executor

    from pybroker.controller.quorum.metadata_log import Writing
    from pybroker.controller.quorum.settings import QuorumSettings

log = logging.getLogger("pybroker.controller")

_SOON_S = 0.03
"""Those who notice the end of a leader together stand for election at random within so long."""
_AGAIN_S = 0.1
_CAMPAIGNS = 10
"""So often an election is tried that did not wait for a timeout; later the timeouts decide."""
_HAND_OVER_S = 1.0
_NOT_LEADING = "this node does not lead the metadata quorum"


class DriverEvents(NamedTuple):
    """Whom the driver calls, always on the loop's thread."""

    apply: Callable[[Sequence[tuple[Committed, Any]]], None]
    """What is committed, each with what `propose` was called with, None for what others proposed."""
    leadership: Callable[[bool], None]
    """This voter leads, and all that earlier leaders committed is applied; or it leads no more."""
    fetch: Callable[[SnapshotMark, int], Awaitable[None]]
    """Get a checkpoint from a voter onto the disk."""
    restart: Callable[[SnapshotMark], None]
    """All that was applied is replaced by a checkpoint that was fetched."""
    failure: Callable[[Exception], None]
    """The log is lost for this process."""
    refused: Callable[[int], None] = lambda _: None
    """The connection to a voter ended, and its port refuses another one."""


class _Proposal(NamedTuple):
    term: int
    what: Any
    committed: asyncio.Future[None]


class Driver:
    """Drives one voter. Used from one event loop."""

    def __init__(self, voter: Voter, settings: QuorumSettings, disk: Executor, events: DriverEvents) -> None:
        """Make a driver that stands still; `disk` has one thread."""
        self.voter = voter
        self._settings = settings
        self._disk = disk
        self._events = events
        self.peers = Peers(settings, PeerEvents(self._connected, voter.unreachable, self._refused))
        self._queue: list[Writing] = []
        # Invariant: not None exactly while the disk's thread writes for the voter.
        self._write: asyncio.Future[None] | None = None
        self._read: asyncio.Future[Any] | None = None
        self._fetch: asyncio.Task[None] | None = None
        self._proposals: dict[int, _Proposal] = {}
        self._is_pumping = False
        self._is_running = False
        self._failure: Exception | None = None
        # The term that this voter was elected in and the entry that began it, None while it does not lead.
        self._elected: tuple[int, int] | None = None
        self._leads = False
        self._applied = voter.applied
        self.committed_offset = voter.end_of(self._applied)
        """Offset after the last record that is known to be committed."""
        self._advance: asyncio.Future[None] | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._campaign: asyncio.TimerHandle | None = None
        self._campaigns_left = 0

    @property
    def leads(self) -> bool:
        """Whether this voter leads and has applied all that was committed before its term."""
        return self._leads

    def start(self) -> None:
        """Begin to count time and to reach the others; the only voter stands for election at once."""
        self._is_running = True
        if self._settings.is_alone:
            self.voter.campaign()
            self._pump()
        else:
            self.peers.start()
            self._tick_later()

    def propose(self, values: Sequence[bytes], what: Any) -> asyncio.Future[None]:
        """Append records as one batch; the future ends when they are committed and `what` is applied.

        Raises `NotControllerError`, as the future does.
        """
        if self._failure is not None:
            raise NotControllerError(f"the metadata log failed: {self._failure}")
        index = self.voter.propose(values)
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proposals[index] = _Proposal(self.voter.term, what, committed)
        self._pump()
        return committed

    def take(self, voter: int, messages: Sequence[bytes]) -> None:
        """Take messages of another voter; raises `QuorumError` for the first that is none, after those before it."""
        if not self._is_running:
            return
        try:
            for message in messages:
                offered = self.voter.take(voter, message)
                if offered is not None:
                    self._begin_fetch(offered, voter)
        finally:
            self._pump()

    async def wait_committed(self, beyond_offset: int) -> None:
        """Return when more is committed than the records below `beyond_offset`, or when the driver stops."""
        while self.committed_offset <= beyond_offset and self._is_running:
            if self._advance is None:
                self._advance = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._advance)

    async def stop(self) -> None:
        """Hand the leadership over if somebody takes it, finish the write that is under way, and stand still."""
        if self.voter.is_leader and self.peers.connected and self._failure is None:
            await self._hand_over()
        self._is_running = False
        for handle in (self._ticking, self._campaign):
            if handle is not None:
                handle.cancel()
        await self.peers.stop()
        if self._fetch is not None:
            self._fetch.cancel()
            await asyncio.gather(self._fetch, return_exceptions=True)
        while self._write is not None or self._read is not None:
            await asyncio.gather(*filter(None, (self._write, self._read)), return_exceptions=True)
            await asyncio.sleep(0)  # their callbacks run
        self._lose()
        self._wake()

    def _pump(self) -> None:
        """Do what the voter asks for until it asks for nothing."""
        if self._is_pumping or self._failure is not None:
            return
        self._is_pumping = True
        try:
            while (step := self.voter.step()) is not None or self._observe():
                if step is None:
                    continue
                self.peers.send(step.messages)
                writing = step.writing
                if writing.is_empty and self._write is None and not self._queue:
                    self.voter.persisted(writing.number)
                    self.peers.send(writing.messages)
                else:
                    self._queue.append(writing)
                if writing.restart_at is not None:
                    self._restart(writing.restart_at)
                if step.committed:
                    self._apply(step.committed)
        except Exception as error:  # noqa: BLE001 - whatever it is, the voter's state is not known any more
            self._fail(error)
            return
        finally:
            self._is_pumping = False
        self._begin_write()
        self._begin_read()

    def _apply(self, committed: Sequence[Committed]) -> None:
        found = [(entry, self._proposals.pop(entry.raft_index, None)) for entry in committed]
        self._events.apply(
            [(entry, own.what if own is not None and own.term == entry.term else None) for entry, own in found]
        )
        self._applied = committed[-1].raft_index
        self.committed_offset = committed[-1].last_offset + 1
        for entry, own in found:
            if own is not None and not own.committed.done():
                if own.term == entry.term:
                    own.committed.set_result(None)
                else:
                    own.committed.set_exception(NotControllerError(_NOT_LEADING))
        self._wake()

    def _restart(self, offset: int) -> None:
        mark = self.voter.installed
        if mark is None or mark.id.end_offset != offset:
            raise ControllerError(f"the metadata log begins anew at offset {offset} without a checkpoint")
        self._events.restart(mark)
        self._applied, self.committed_offset = mark.raft_index, offset
        self._wake()

    def _observe(self) -> bool:
        """Follow the elections; return whether there may be more to do."""
        voter = self.voter
        term = voter.term if voter.is_leader else None
        if self._elected is not None and self._elected[0] != term:
            self._lose()
        if term is not None and self._elected is None:
            self._elected = (term, voter.last_index)
        if self._elected is not None and not self._leads and self._applied >= self._elected[1]:
            self._leads = True
            self._events.leadership(True)
            return True
        return False

    def _lose(self) -> None:
        """Note that this voter leads no more: what it has not committed is for others to decide."""
        proposals, self._proposals = self._proposals, {}
        for proposal in proposals.values():
            if not proposal.committed.done():
                proposal.committed.set_exception(NotControllerError(_NOT_LEADING))
        self._elected = None
        if self._leads:
            self._leads = False
            self._events.leadership(False)

    def _begin_write(self) -> None:
        if self._write is None and self._queue:
            writings, self._queue = self._queue, []
            self._write = asyncio.get_running_loop().run_in_executor(self._disk, self.voter.log.write, writings)
            self._write.add_done_callback(partial(self._written, writings))

    def _written(self, writings: Sequence[Writing], write: asyncio.Future[None]) -> None:
        self._write = None
        error = None if write.cancelled() else write.exception()
        if error is not None:
            self._fail(error if isinstance(error, Exception) else ControllerError(str(error)))
            return
        self.voter.persisted(writings[-1].number)
        self.peers.send([message for writing in writings for message in writing.messages])
        self._pump()

    def _begin_read(self) -> None:
        """Read what a voter needs that is further behind than what is kept in memory."""
        index = self.voter.wanted
        if self._read is None and index is not None and self._is_running:
            self._read = asyncio.get_running_loop().run_in_executor(
                self._disk, read_entries, self.voter.log, index, self.voter.end_of(index - 1)
            )
            self._read.add_done_callback(partial(self._have_read, index))

    def _have_read(self, index: int, read: asyncio.Future[Any]) -> None:
        self._read = None
        if read.cancelled():
            return
        error = read.exception()
        if error is not None:
            log.warning("entries from %d on cannot be read for another voter: %s", index, error)
        self.voter.provide(index, [] if error is not None else read.result())
        self._pump()

    def _begin_fetch(self, offered: SnapshotMark, leader: int) -> None:
        if self._fetch is None or self._fetch.done():
            self._fetch = asyncio.get_running_loop().create_task(self._fetch_snapshot(offered, leader))
        else:
            self.voter.decline()  # One at a time; the leader offers it again.

    async def _fetch_snapshot(self, offered: SnapshotMark, leader: int) -> None:
        log.info("fetching the snapshot up to offset %d from voter %d", offered.id.end_offset, leader)
        try:
            await self._events.fetch(offered, leader)
            self.voter.install(offered, self._settings.voters)
        except (OSError, ControllerError, MetadataError) as error:
            log.warning("the snapshot up to offset %d cannot be fetched: %s", offered.id.end_offset, error)
            self.voter.decline()
        self._pump()

    def _connected(self, _voter: int) -> None:
        self._campaign_soon()

    def _refused(self, voter: int) -> None:
        self._events.refused(voter)
        grace_ms = self._settings.death_grace_ms
        if grace_ms >= 0 and voter == self.voter.leader:
            asyncio.get_running_loop().call_later(grace_ms / 1000, self._bury, voter, self.voter.term)

    def _bury(self, voter: int, term: int) -> None:
        """Take the leader for dead, unless it was reached again or another one was elected meanwhile."""
        if self._is_running and (self.voter.leader, self.voter.term) == (voter, term) and not self.peers.reaches(voter):
            log.info("voter %d, the leader of the quorum, is gone: an election begins", voter)
            self.voter.forget_leader()
            self._pump()
            self._campaign_soon()

    def _campaign_soon(self) -> None:
        self._campaigns_left = _CAMPAIGNS
        if self._campaign is None and self._is_running:
            pause_s = random.uniform(0, _SOON_S)
            self._campaign = asyncio.get_running_loop().call_later(pause_s, self._campaign_now)

    def _campaign_now(self) -> None:
        """Stand for election if nobody leads and a majority is reached: a pre-vote, which disturbs no leader."""
        self._campaign = None
        reached = 2 * (self.peers.connected + 1) > len(self._settings.voters)
        if self.voter.leader is not None or not reached or self._failure is not None:
            return
        self.voter.campaign()
        self._pump()
        self._campaigns_left -= 1
        if self._campaigns_left > 0 and self._is_running:
            pause_s = random.uniform(_AGAIN_S, 2 * _AGAIN_S)
            self._campaign = asyncio.get_running_loop().call_later(pause_s, self._campaign_now)

    def _tick_later(self) -> None:
        tick_s = self._settings.fetch_timeout_ms / 2000 / ELECTION_TICKS
        self._ticking = asyncio.get_running_loop().call_later(tick_s, self._tick)

    def _tick(self) -> None:
        self.voter.tick()
        self._pump()
        if self._is_running and self._failure is None:
            self._tick_later()

    async def _hand_over(self) -> None:
        """Have the voter with the longest log lead, so that nobody waits for a timeout."""
        others = [(index, node_id) for node_id, index, _ in self.voter.progress() if node_id != self._settings.node_id]
        if not others:
            return
        self.voter.transfer_leader(max(others)[1])
        self._pump()
        deadline = asyncio.get_running_loop().time() + _HAND_OVER_S
        while self.voter.is_leader and asyncio.get_running_loop().time() < deadline and self._failure is None:
            await asyncio.sleep(0.005)

    def _wake(self) -> None:
        if self._advance is not None:
            self._advance.set_result(None)
            self._advance = None

    def _fail(self, error: Exception) -> None:
        if self._failure is not None:
            return
        self._failure = error
        proposals, self._proposals = self._proposals, {}
        for proposal in proposals.values():
            if not proposal.committed.done():
                proposal.committed.set_exception(error)
        self._events.failure(error)
