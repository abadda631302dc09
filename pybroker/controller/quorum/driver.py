"""Drives a voter: writes its log on a thread, sends its messages to the other replicas, and applies commits here.

Owns the order. Messages that do not depend on the disk are sent at once; others are sent after the write. One write is
in progress at a time; the next one contains everything that arrived meanwhile, with one sync. Commits are applied in
log order, and then the proposers' futures complete. Owns the clock's ticks too, and the fast election: a voter that
knows no leader and is connected to a majority campaigns within milliseconds (ADR 0039). Must not know records.

A proposal fails with `NotControllerError` when this voter stops leading before the commit: another leader may still
commit it. A failed write stops everything, because only a restart shows how much of the write reached the disk.
"""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.controller.errors import ControllerError, NotControllerError
from pybroker.controller.quorum.election_times import election_pause_s, tick_seconds
from pybroker.controller.quorum.transport.announced_replicas import AnnouncedReplica, AnnouncedReplicas
from pybroker.controller.quorum.transport.peers import PeerAddress, PeerEvents, Peers
from pybroker.controller.quorum.voter import Committed, SnapshotMark, Voter, read_entries
from pybroker.controller.quorum.voters.voter_set import node_of
from pybroker.metadata.errors import MetadataError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from concurrent.futures import Executor

    from pybroker.controller.quorum.log.metadata_log import Writing
    from pybroker.controller.quorum.settings import QuorumSettings
    from pybroker.controller.quorum.voters.voter_set import VoterSet

log = logging.getLogger("pybroker.controller")

_SOON_S = 0.03
"""Voters that detect a leader's failure at the same time campaign after a random delay up to this."""
_CAMPAIGNS = 10
"""Number of campaigns without an election timeout; after these the timeouts apply."""
_HAND_OVER_S = 1.0
_ANNOUNCE_S = 0.5
"""Interval at which a replica that does not vote, or knows no leader, announces its endpoint."""
_NOT_LEADING = "this node does not lead the metadata quorum"


class DriverEvents(msgspec.Struct, frozen=True):
    """Callbacks of the driver, always on the loop's thread."""

    apply: Callable[[Sequence[tuple[Committed, Any]]], None]
    """Committed entries, each with the argument of `propose`, or None if another replica proposed it."""
    leadership: Callable[[bool], None]
    """True: this voter leads, and all entries of earlier leaders are applied. False: it does not lead any more."""
    fetch: Callable[[SnapshotMark, PeerAddress], Awaitable[VoterSet | None]]
    """Fetch a snapshot from a voter onto the disk, and return the voter set in it."""
    restart: Callable[[SnapshotMark], None]
    """Replace everything that was applied by a fetched snapshot."""
    failure: Callable[[Exception], None]
    """The log has failed and cannot be used by this process any more."""
    reach: Callable[[int, bool], None] = lambda _voter, _is_reached: None
    """A voter is connected (True), or its connection is closed (False), as when its process ends."""


class _Proposal(msgspec.Struct, frozen=True):
    term: int
    what: Any
    committed: asyncio.Future[None]


class Driver:
    """Drives one voter. Used from one event loop."""

    def __init__(self, voter: Voter, settings: QuorumSettings, disk: Executor, events: DriverEvents) -> None:
        """Create a driver that is not started; `disk` has one thread."""
        self.voter = voter
        self._settings = settings
        self._disk = disk
        self._events = events
        self.peers = Peers(settings, self._peer_events())
        self.announced = AnnouncedReplicas()
        """Replicas that are not voters and have announced their endpoints."""
        self._leader_at: tuple[str, int] | None = None
        self._announced_s = 0.0
        self._resigning: asyncio.Task[None] | None = None
        self._queue: list[Writing] = []
        # Invariant: not None exactly while the disk's thread writes for the voter.
        self._write: asyncio.Future[None] | None = None
        self._read: asyncio.Future[Any] | None = None
        self._fetch: asyncio.Task[None] | None = None
        self._proposals: dict[int, _Proposal] = {}
        self._is_pumping = False
        self._is_running = False
        self._failure: Exception | None = None
        # The term in which this voter was elected and the entry that began it, None while it does not lead.
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
        """Whether this voter leads and has applied all entries committed before its term."""
        return self._leads

    def start(self) -> None:
        """Start ticks and connections; the only voter campaigns at once."""
        self._is_running = True
        if self.voter.is_alone:
            self.voter.campaign()
            self._pump()
        self._follow_voters()

    def propose(self, values: Sequence[bytes], what: Any) -> asyncio.Future[None]:
        """Append records as one batch; the future completes when they are committed and `what` is applied.

        Raises `NotControllerError`, as the future does.
        """
        if self._failure is not None:
            raise NotControllerError(f"the metadata log failed: {self._failure}")
        if not self._is_running:
            # With no successor, the voter may still be the leader, and nothing would ever commit this.
            raise NotControllerError(_NOT_LEADING)
        index = self.voter.propose(values)
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proposals[index] = _Proposal(self.voter.term, what, committed)
        self._pump()
        return committed

    def propose_voters(self, voters: VoterSet) -> asyncio.Future[None]:
        """Propose a voter set; the future completes when it is committed, in force, and on this disk.

        Raises `NotControllerError`, as the future does, and `QuorumError` while another change is in progress.
        """
        if self._failure is not None:
            raise NotControllerError(f"the metadata log failed: {self._failure}")
        index = self.voter.propose_voters(voters)
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proposals[index] = _Proposal(self.voter.term, None, committed)
        self._pump()
        return committed

    async def completed(self) -> None:
        """Return when all writes that the voter has requested so far are done."""
        while self._failure is None and (self._write is not None or self._queue):
            if self._write is not None:
                await asyncio.wait([self._write])
            await asyncio.sleep(0)  # lets the callback of the write run

    def take(self, key: int, messages: Sequence[bytes]) -> None:
        """Process another replica's messages; raises `QuorumError` for the first invalid one, after those before it."""
        if not self._is_running:
            return
        try:
            for message in messages:
                offered = self.voter.take(key, message)
                if offered is not None:
                    self._begin_fetch(offered, key)
        finally:
            self._pump()

    def greet(self, key: int, replica: AnnouncedReplica) -> None:
        """Record the endpoint of a replica that is not a voter, or of a voter that cannot be reached.

        A leader sends the log to a replica that is not a voter.
        """
        is_voter = self.voter.voters.has(key)
        if not self._is_running or key == self.voter.key or (is_voter and self.peers.reaches(key)):
            return
        is_new = self.announced.greet(key, replica)
        if is_new:
            self._follow_voters()
        if is_voter:
            return
        if self.voter.is_leader and (is_new or key not in {learner for learner, _, _ in self.voter.progress()}):
            self.voter.add_learner(key)
            self._pump()

    async def wait_committed(self, beyond_offset: int) -> None:
        """Return when the high watermark exceeds `beyond_offset`, or when the driver stops."""
        while self.committed_offset <= beyond_offset and self._is_running:
            if self._advance is None:
                self._advance = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._advance)

    async def stop(self) -> None:
        """Transfer the leadership if another voter is connected, finish the write in progress, and stop."""
        if self.voter.is_leader and self.peers.connected and self._failure is None:
            await self._hand_over()
        self._is_running = False
        if self._resigning is not None:
            self._resigning.cancel()
            await asyncio.gather(self._resigning, return_exceptions=True)
        for handle in (self._ticking, self._campaign):
            if handle is not None:
                handle.cancel()
        await self.peers.stop()
        if self._fetch is not None:
            self._fetch.cancel()
            await asyncio.gather(self._fetch, return_exceptions=True)
        while self._write is not None or self._read is not None:
            await asyncio.gather(*filter(None, (self._write, self._read)), return_exceptions=True)
            await asyncio.sleep(0)  # lets the callbacks run
        self._lose()
        self._wake()

    def _pump(self) -> None:
        """Process the steps of the voter until there are none."""
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
                if step.changes_voters:
                    self._voters_changed()
        except Exception as error:  # noqa: BLE001 - whatever it is, the voter's state is unknown then
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
            raise ControllerError(f"the metadata log restarts at offset {offset} without a snapshot")
        self._events.restart(mark)
        self._applied, self.committed_offset = mark.raft_index, offset
        self._wake()

    def _observe(self) -> bool:
        """Update the leadership; return whether there may be more steps."""
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
        """Handle the loss of leadership: the next leader decides about uncommitted proposals."""
        proposals, self._proposals = self._proposals, {}
        for proposal in proposals.values():
            if not proposal.committed.done():
                proposal.committed.set_exception(NotControllerError(_NOT_LEADING))
        self._elected = None
        for key in self.announced.all:
            self.voter.remove_learner(key)
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
        """Read entries from the disk for a lagging voter, if they are not in memory any more."""
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
            log.warning("Failed to read entries from offset %d for another voter: %s", index, error)
        self.voter.provide(index, [] if error is not None else read.result())
        self._pump()

    def _begin_fetch(self, offered: SnapshotMark, leader: int) -> None:
        address = self.peers.address(leader)
        if address is not None and (self._fetch is None or self._fetch.done()):
            self._fetch = asyncio.get_running_loop().create_task(self._fetch_snapshot(offered, address))
        else:
            self.voter.decline()  # One at a time; the leader offers it again.

    async def _fetch_snapshot(self, offered: SnapshotMark, leader: PeerAddress) -> None:
        log.info("fetching the snapshot up to offset %d from voter %d", offered.id.end_offset, leader.node_id)
        try:
            self.voter.install(offered, await self._events.fetch(offered, leader))
        except (OSError, ControllerError, MetadataError) as error:
            log.warning("Failed to fetch the snapshot up to offset %d: %s", offered.id.end_offset, error)
            self.voter.decline()
        self._pump()

    def _voters_changed(self) -> None:
        """Connect to the new voters. A leader that is not a voter any more resigns."""
        log.info("Voters of the metadata quorum: %s", self.voter.voters)
        self._follow_voters()
        if self.voter.is_leader and not self.voter.votes and self._resigning is None and self._is_running:
            self._resigning = asyncio.get_running_loop().create_task(self._give_way())

    async def _give_way(self) -> None:
        try:
            await self._hand_over()
            self.voter.resign()
            self._pump()
        finally:
            self._resigning = None

    def _follow_voters(self) -> None:
        """Connect to the replicas that exchange messages with this one, and start ticks if there are other voters."""
        if not self._is_running:
            return
        voter = self.voter
        addresses = {}
        for one in voter.voters.voters:
            endpoint = one.endpoint(self._listener)
            if one.key != voter.key and endpoint is not None:
                addresses[one.key] = PeerAddress(one.node_id, endpoint.host, endpoint.port)
        if voter.is_dynamic:
            for key, replica in self.announced.all.items():
                addresses[key] = PeerAddress(replica.node_id, replica.endpoint.host, replica.endpoint.port)
            addresses |= self._unknown(addresses)
        self.peers.update(addresses, locates=voter.is_dynamic)
        if self._ticking is None and (voter.is_dynamic or not voter.is_alone):
            self._tick_later()

    def _unknown(self, known: Mapping[int, PeerAddress]) -> dict[int, PeerAddress]:
        """Return the replicas of which only an address is known, while this replica does not vote."""
        if self.voter.votes:
            return {}
        at = {(address.host, address.port) for address in known.values()}
        at |= {(endpoint.host, endpoint.port) for endpoint in self._settings.endpoints}
        requested = [*self._settings.bootstrap_servers, *([self._leader_at] if self._leader_at is not None else [])]
        places = [place for place in dict.fromkeys(requested) if place not in at]
        return {-number: PeerAddress(-1, *place) for number, place in enumerate(places, 1)}

    @property
    def _listener(self) -> str:
        """The name of the listener that controllers use for connections to each other."""
        return self._settings.endpoints[0].listener if self._settings.endpoints else ""

    def _leader_found(self, host: str, port: int) -> None:
        if (host, port) != self._leader_at and not self.voter.votes:
            self._leader_at = (host, port)
            self._follow_voters()

    def _peer_events(self) -> PeerEvents:
        hung_up = partial(self._note_reach, is_reached=False)
        return PeerEvents(self._connected, self.voter.unreachable, self._refused, hung_up, self._leader_found)

    def _connected(self, key: int) -> None:
        self._note_reach(key, is_reached=True)
        self._campaign_soon()

    def _note_reach(self, key: int, *, is_reached: bool) -> None:
        if key >= 0:
            self._events.reach(node_of(key), is_reached)

    def _refused(self, key: int) -> None:
        grace_ms = self._settings.death_grace_ms
        if grace_ms >= 0 and key == self.voter.leader_key:
            asyncio.get_running_loop().call_later(grace_ms / 1000, self._forget_failed_leader, key, self.voter.term)

    def _forget_failed_leader(self, key: int, term: int) -> None:
        """Forget a failed leader and campaign, unless it reconnected or another one was elected meanwhile."""
        if self._is_running and (self.voter.leader_key, self.voter.term) == (key, term) and not self.peers.reaches(key):
            log.info(
                "The connection to voter %d, the leader of the quorum, has ended: starting an election", node_of(key)
            )
            self.voter.forget_leader()
            self._pump()
            self._campaign_soon()

    def _campaign_soon(self) -> None:
        self._campaigns_left = _CAMPAIGNS
        if self._campaign is None and self._is_running:
            pause_s = random.uniform(0, _SOON_S)
            self._campaign = asyncio.get_running_loop().call_later(pause_s, self._campaign_now)

    def _campaign_now(self) -> None:
        """Campaign if there is no leader and a majority is connected. The pre-vote does not disturb a leader."""
        self._campaign = None
        voters = self.voter.voters.keys
        reached = 2 * (sum(map(self.peers.reaches, voters)) + 1) > len(voters)
        if self.voter.leader is not None or not self.voter.votes or not reached or self._failure is not None:
            return
        self.voter.campaign()
        self._pump()
        self._campaigns_left -= 1
        if self._campaigns_left > 0 and self._is_running:
            pause_s = election_pause_s(_CAMPAIGNS - self._campaigns_left, self._settings.election_backoff_max_ms)
            self._campaign = asyncio.get_running_loop().call_later(pause_s, self._campaign_now)

    def _tick_later(self) -> None:
        tick_s = tick_seconds(self._settings, knows_leader=self.voter.leader_key is not None)
        self._ticking = asyncio.get_running_loop().call_later(tick_s, self._tick)

    def _tick(self) -> None:
        self.voter.tick()
        if self.voter.is_dynamic:
            self._check_membership()
        self._pump()
        if self._is_running and self._failure is None:
            self._tick_later()

    def _check_membership(self) -> None:
        """Remove observers that have been silent for long. Announce this replica while it knows no leader."""
        now_s = asyncio.get_running_loop().time()
        voter = self.voter
        removed = self.announced.leave(now_s)
        for key in removed:
            voter.remove_learner(key)
        if removed:
            self._follow_voters()
        is_lost = not voter.is_leader and (not voter.votes or voter.leader is None)
        if is_lost and now_s - self._announced_s >= _ANNOUNCE_S:
            self._announced_s = now_s
            self.peers.announce()

    async def _hand_over(self) -> None:
        """Transfer the leadership to the connected voter with the longest log, to avoid an election timeout."""
        voters, reaches = self.voter.voters, self.peers.reaches
        others = [(index, key) for key, index, _ in self.voter.progress() if voters.has(key) and reaches(key)]
        if not others:
            return
        chosen = max(others)[1]
        self.voter.transfer_leader(chosen)
        self._pump()
        deadline = asyncio.get_running_loop().time() + _HAND_OVER_S
        while self.voter.is_leader and self._failure is None and reaches(chosen):
            if asyncio.get_running_loop().time() >= deadline:
                return
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
