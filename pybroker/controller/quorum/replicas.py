"""The leader's view of its followers: their log end offsets, and when each last sent a message.

Owns the times, for DescribeQuorum. Must not know the transport. Times are arguments, in ms since 1970. An observer that
has not fetched for `FORGET_MS` is removed, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.channel import QuorumReplica

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.controller.quorum.transport.announced_replicas import AnnouncedReplica
    from pybroker.controller.quorum.voters.voter_set import VoterSet

FORGET_MS = 300_000
_MOST_OBSERVERS = 10_000
_UNKNOWN = -1


class Replicas:
    """The voters and observers of the metadata log, as its leader sees them. Replicas of the Raft log have keys."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._caught_up: dict[int, int] = {}
        self._observers: dict[tuple[int, bytes], QuorumReplica] = {}

    def note_voter(self, key: int, now_ms: int) -> None:
        """Record that a replica of the Raft log has sent a message."""
        if key in self._seen or len(self._seen) < _MOST_OBSERVERS:
            self._seen[key] = now_ms

    def note_progress(self, progress: Sequence[tuple[int, int, int]], last_index: int, now_ms: int) -> None:
        """Record which replicas have caught up with the log."""
        for key, index, _ in progress:
            if index >= last_index:
                self._caught_up[key] = now_ms

    def note_observer(self, node_id: int, directory_id: bytes, offset: int, end_offset: int, now_ms: int) -> None:
        """Record that an observer has fetched up to `offset` of a log that ends at `end_offset`."""
        key = (node_id, directory_id)
        before = self._observers.get(key)
        caught_up = now_ms if offset >= end_offset else (before.last_caught_up_ms if before else _UNKNOWN)
        if before is None and len(self._observers) >= _MOST_OBSERVERS:
            self._forget(now_ms)
            if len(self._observers) >= _MOST_OBSERVERS:
                return
        self._observers[key] = QuorumReplica(node_id, directory_id, offset, now_ms, caught_up)

    def voters(
        self, voters: VoterSet, own: int, progress: Sequence[tuple[int, int, int]], end_offset: int, now_ms: int
    ) -> tuple[QuorumReplica, ...]:
        """Return the state of the voters; the leader, whose key is `own`, is always up to date."""
        ends = {key: end for key, _, end in progress}
        return tuple(
            QuorumReplica(
                voter.node_id,
                voter.directory_id,
                end_offset if voter.key == own else ends.get(voter.key, _UNKNOWN),
                now_ms if voter.key == own else self._seen.get(voter.key, _UNKNOWN),
                now_ms if voter.key == own else self._caught_up.get(voter.key, _UNKNOWN),
            )
            for voter in voters.voters
        )

    def observers(
        self,
        voters: VoterSet,
        announced: Mapping[int, AnnouncedReplica],
        progress: Sequence[tuple[int, int, int]],
        now_ms: int,
    ) -> tuple[QuorumReplica, ...]:
        """Return the state of replicas that do not vote: first controllers, then observers that fetch.

        Removes observers that have stopped fetching.
        """
        self._forget(now_ms)
        ends = {key: end for key, _, end in progress}
        learners = [
            QuorumReplica(
                replica.node_id,
                replica.directory_id,
                ends.get(key, _UNKNOWN),
                self._seen.get(key, _UNKNOWN),
                self._caught_up.get(key, _UNKNOWN),
            )
            for key, replica in announced.items()
            if not voters.has(key)
        ]
        taken = {one.node_id for one in learners} | set(voters.node_ids)
        return (*learners, *(one for one in self._observers.values() if one.node_id not in taken))

    def _forget(self, now_ms: int) -> None:
        for key, observer in list(self._observers.items()):
            if now_ms - observer.last_fetch_ms > FORGET_MS:
                del self._observers[key]
