"""What stands for sockets, clocks and vote files under the real controllers of a simulated cluster.

Owns the ways between voters, with what a voter notices of the others' coming and going, and the watch that ends a
silent leader's term: the library's own timeouts have dice of their own, so they never come here (`NO_TIMEOUTS`).
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from pybroker.controller import service
from pybroker.controller.quorum import driver, voter
from pybroker.controller.quorum.log import hard_state, metadata_log
from pybroker.controller.quorum.log.log_position import LogPosition, PositionFile
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.quorum.transport.peers import PeerAddress, PeerEvents
from pybroker.protocol.messages.raft_messages import RaftMessagesRequest
from tests.simulation.simulated_loop import SimulatedLoop, living

NO_TIMEOUTS = 10_000_000
_SILENCE_S = (1.0, 2.0)
"""A voter that receives nothing for so long, at random, stands for election: `controller.quorum.fetch.timeout.ms`."""


class _ClosedPositionFile(PositionFile):
    """Closes its file after each write: a process that ends has none open, and here it ends within this one."""

    def write(self, position: LogPosition) -> None:
        super().write(position)
        self.close()

    def clear(self, term: int) -> None:
        self.write(LogPosition(term))


class SimulatedPeers:
    """Stands for `Peers`."""

    def __init__(self, settings: QuorumSettings, events: PeerEvents) -> None:
        self._node = living()
        self._settings, self.events = settings, events
        self._others = [number for number in settings.voters if number != settings.node_id]
        self._node.peers = self

    @property
    def connected(self) -> int:
        return sum(map(self.reaches, self._others))

    def reaches(self, voter: int) -> bool:
        return bool(self._node.network.reaches(self._node.number, voter))

    def update(self, addresses: Mapping[int, PeerAddress], *, locates: bool = False) -> None:
        """The ways are there."""

    def address(self, key: int) -> PeerAddress:
        return PeerAddress(key, "simulated", 1)

    def send(self, messages: Sequence[tuple[int, bytes]]) -> None:
        node = self._node
        for to, message in messages:
            if not self.reaches(to):
                asyncio.get_running_loop().call_soon(self.events.lost, to)
                continue
            request = RaftMessagesRequest(
                cluster_id=self._settings.cluster_id, from_id=node.number, to_id=to, messages=[message]
            )
            node.network.send(node.number, to, node.world.nodes[to].take_raft, request)

    async def stop(self) -> None:
        """Nothing is to be ended."""


class SilenceWatch:
    """Ends what a voter believes about its leader when nothing comes from it, and has the voter stand for election."""

    def __init__(self, loop: SimulatedLoop, random: Random, controller: Any) -> None:
        self._loop, self._random, self._controller = loop, random, controller
        self._until = 0.0
        self.note()
        loop.call_later(self._random.uniform(*_SILENCE_S), self._look)

    def note(self) -> None:
        """Something came from the leader, or this voter leads."""
        self._until = self._loop.time() + self._random.uniform(*_SILENCE_S)

    def _look(self) -> None:
        voter, own = self._controller._voter, self._controller._driver
        if voter.is_leader:
            self.note()
        elif self._loop.time() >= self._until:
            voter.forget_leader()
            voter.campaign()
            own._pump()
            self.note()
        self._loop.call_at(max(self._until, self._loop.time() + 0.05), self._look)


@contextmanager
def simulated(loop: SimulatedLoop, random: Random, *, persists_votes: bool = True) -> Iterator[None]:
    """Put the simulation in the place of the system."""

    def replace_file(path: Path, text: str) -> None:
        if persists_votes:
            living().disk.replace_file(str(path), text.encode())

    with ExitStack() as stack:
        for module, name, value in (
            (driver, "Peers", SimulatedPeers),
            (random_module, "uniform", random.uniform),
            (voter, "ELECTION_TICKS", NO_TIMEOUTS),
            (hard_state, "replace_file", replace_file),
            (metadata_log, "PositionFile", _ClosedPositionFile),
            (service, "_now_ms", loop.now_ms),
            (service, "_wall_clock_ms", loop.now_ms),
        ):
            stack.enter_context(patch.object(module, name, value))
        if not persists_votes:
            # The term in `metadata-log-position` would keep a voter from its second vote.
            stack.enter_context(patch.object(voter, "read_position", lambda _directory: LogPosition()))
        # What befalls a node is no news to a simulation.
        level = logging.root.manager.disable
        stack.callback(logging.disable, level)
        logging.disable(logging.CRITICAL)
        yield
