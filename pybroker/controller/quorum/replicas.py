"""What a leader knows of those who follow it: how far they have come, and when they last sent something.

Owns the times, for DescribeQuorum. Must not know how messages travel. Times are arguments, in ms since 1970. An
observer that has not fetched for `FORGET_MS` is forgotten, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.channel import QuorumReplica

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.controller.quorum.settings import QuorumSettings

FORGET_MS = 300_000
_MOST_OBSERVERS = 10_000
_UNKNOWN = -1


class Replicas:
    """The voters and observers of the metadata log, as its leader sees them."""

    def __init__(self, settings: QuorumSettings) -> None:
        self._node_id = settings.node_id
        self._voters = settings.voters
        self._directories = {address.node_id: address.directory_id for address in settings.addresses}
        self._seen: dict[int, int] = {}
        self._caught_up: dict[int, int] = {}
        self._observers: dict[tuple[int, bytes], QuorumReplica] = {}

    def note_voter(self, node_id: int, now_ms: int) -> None:
        """Note a sign of life."""
        self._seen[node_id] = now_ms

    def note_progress(self, progress: Sequence[tuple[int, int, int]], last_index: int, now_ms: int) -> None:
        """Note who has all of the log."""
        for node_id, index, _ in progress:
            if index >= last_index:
                self._caught_up[node_id] = now_ms

    def note_observer(self, node_id: int, directory_id: bytes, offset: int, end_offset: int, now_ms: int) -> None:
        """Note that an observer has everything below `offset` of a log that ends at `end_offset`."""
        if node_id in self._voters:
            return
        key = (node_id, directory_id)
        before = self._observers.get(key)
        caught_up = now_ms if offset >= end_offset else (before.last_caught_up_ms if before else _UNKNOWN)
        if before is None and len(self._observers) >= _MOST_OBSERVERS:
            self.observers(now_ms)
            if len(self._observers) >= _MOST_OBSERVERS:
                return
        self._observers[key] = QuorumReplica(node_id, directory_id, offset, now_ms, caught_up)

    def voters(
        self, progress: Sequence[tuple[int, int, int]], end_offset: int, now_ms: int
    ) -> tuple[QuorumReplica, ...]:
        """Return the voters, the leader itself as of now."""
        ends = {node_id: end for node_id, _, end in progress}
        return tuple(
            QuorumReplica(
                node_id,
                self._directories.get(node_id, bytes(16)),
                end_offset if node_id == self._node_id else ends.get(node_id, _UNKNOWN),
                now_ms if node_id == self._node_id else self._seen.get(node_id, _UNKNOWN),
                now_ms if node_id == self._node_id else self._caught_up.get(node_id, _UNKNOWN),
            )
            for node_id in self._voters
        )

    def observers(self, now_ms: int) -> tuple[QuorumReplica, ...]:
        """Return those who fetch and do not vote, and forget those who do not fetch any more."""
        for key, observer in list(self._observers.items()):
            if now_ms - observer.last_fetch_ms > FORGET_MS:
                del self._observers[key]
        return tuple(self._observers.values())
