"""Quorums of several voters in one process. Frames go over loopback sockets to minimal listeners."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pybroker.controller.errors import ControllerError
from pybroker.controller.local_channel import LocalChannel
from pybroker.controller.quorum.log.bootstrap import write_first_voters
from pybroker.controller.quorum.settings import QuorumSettings, VoterAddress
from pybroker.controller.quorum.voters.voter_set import KRAFT_VERSIONS, VoterEndpoint, VoterNode, VoterSet
from pybroker.controller.service import Controller
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.header import skip_tagged
from pybroker.protocol.messages.raft_messages import RaftMessagesRequest, RaftMessagesResponse
from tests.support.conditions import TICK_SECONDS
from tests.support.controllers import CLUSTER
from tests.support.processes import free_port


async def until(condition: Callable[[], bool], *, within: float = 60.0) -> None:
    """Poll a condition while the event loop keeps running. Raises AssertionError after `within` seconds."""
    never, deadline = asyncio.Event(), asyncio.get_running_loop().time() + within
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"not within {within} s"
        with suppress(TimeoutError):
            await asyncio.wait_for(never.wait(), TICK_SECONDS)


class Node:
    """One voter and its listener. `stop` shuts it down. `kill` only closes its sockets first, as a crash does."""

    def __init__(self, directory: Path, node_id: int, addresses: tuple[VoterAddress, ...], **settings: Any) -> None:
        self.node_id = node_id
        self._port = settings["endpoints"][0].port if "endpoints" in settings else addresses[node_id].port
        self.failures: list[Exception] = []
        given: dict[str, Any] = {
            "voters": tuple(address.node_id for address in addresses),
            "addresses": addresses,
        } | settings
        self.settings = QuorumSettings(directory / str(node_id), "c", node_id, **({"fetch_timeout_ms": 1000} | given))
        self.controller = Controller(CLUSTER, self.settings, self.failures.append)
        self.channel = LocalChannel(self.controller)
        self.leads: list[bool] = []
        self.controller.on_leadership(self.leads.append)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.is_running = False

    async def start(self) -> None:
        await self.controller.open()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        await self.controller.start()
        self.is_running = True

    async def kill(self) -> None:
        """Close the sockets, as the kernel does for a killed process, and then stop the tasks of the controller."""
        self.is_running = False
        self.close_sockets()
        await self.controller._driver.peers.stop()  # so that it does not transfer leadership
        await self.controller.stop()

    async def stop(self) -> None:
        self.is_running = False
        await self.controller.stop()
        self.close_sockets()

    def close_sockets(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                client = int.from_bytes(frame[8:10])
                request, _ = decode(RaftMessagesRequest, frame, 0, skip_tagged(frame, 10 + client))
                response = RaftMessagesResponse()
                try:
                    self.controller.step(request)
                    if self.controller.is_dynamic and self.controller.leader_endpoint is not None:
                        response.leader_host, response.leader_port = self.controller.leader_endpoint
                except ControllerError:
                    response = RaftMessagesResponse(error_code=42)
                reply = frame[4:8] + b"\0" + encode(response, 0)
                writer.write(len(reply).to_bytes(4) + reply)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()


class QuorumOf:
    """Voters 0, 1, ... of one cluster."""

    def __init__(self, directory: Path, count: int, **settings: Any) -> None:
        self._directory, self._settings = directory, settings
        self._addresses = tuple(VoterAddress(number, "127.0.0.1", free_port()) for number in range(count))
        self.nodes = [Node(directory, number, self._addresses, **settings) for number in range(count)]

    async def start(self, *numbers: int) -> None:
        for number in numbers or range(len(self.nodes)):
            await self.nodes[number].start()

    async def restart(self, number: int) -> Node:
        """Start a new node on the same directory, as a restarted process does."""
        node = self.nodes[number] = Node(self._directory, number, self._addresses, **self._settings)
        await node.start()
        return node

    def leader(self) -> Node | None:
        leaders = [node for node in self.nodes if node.is_running and node.controller.is_leader]
        return max(leaders, key=lambda node: node.controller.leader_epoch, default=None)

    async def elected(self) -> Node:
        """Wait for a leader and return it."""
        await until(lambda: self.leader() is not None)
        leader = self.leader()
        assert leader is not None
        return leader

    async def agreed(self) -> None:
        """Wait until all running nodes have the same metadata offset."""

        def offsets() -> set[int]:
            return {node.controller.image.offset for node in self.nodes if node.is_running}

        await until(lambda: len(offsets()) == 1)


@asynccontextmanager
async def quorum_of(directory: Path, count: int, **settings: Any) -> AsyncIterator[QuorumOf]:
    """Yield a running quorum of voters. Stops it at the end."""
    quorum = QuorumOf(directory, count, **settings)
    try:
        await quorum.start()
        yield quorum
    finally:
        for node in quorum.nodes:
            if node.is_running:
                await node.stop()


class Member(Node):
    """A controller of a quorum with dynamic voters. `first` are the initial voters, written at format time."""

    def __init__(
        self, directory: Path, node_id: int, first: VoterSet, bootstrap: tuple[tuple[str, int], ...], **settings: Any
    ) -> None:
        own = first.find(node_id)
        port = free_port() if own is None else own.endpoints[0].port
        directory_id = os.urandom(16) if own is None else own.directory_id
        super().__init__(
            directory,
            node_id,
            (),
            directory_id=directory_id,
            endpoints=(VoterEndpoint("CONTROLLER", "127.0.0.1", port),),
            bootstrap_servers=bootstrap,
            **settings,
        )

    @property
    def as_voter(self) -> VoterNode:
        return VoterNode(self.node_id, self.settings.directory_id, self.settings.endpoints, KRAFT_VERSIONS)

    @property
    def voters(self) -> tuple[int, ...]:
        """The voters that this node knows."""
        return self.controller._voter.voters.node_ids

    async def start(self) -> None:
        await super().start()
        self.controller.voters._query_versions = _newest_versions

    def again(self) -> Member:
        """Return a new node on the same directory, as for a restarted process."""
        given = self.settings._asdict()
        for name in ("cluster_id", "node_id", "voters", "addresses"):
            del given[name]
        member = Member.__new__(Member)
        Node.__init__(member, given.pop("directory").parent, self.node_id, (), **given)
        return member


async def _newest_versions(_host: str, _port: int, _timeout_ms: int) -> tuple[int, int]:
    return KRAFT_VERSIONS


class Members(QuorumOf):
    """Controllers 0, 1, ... of a quorum with dynamic voters. The first `count` of them are the initial voters."""

    nodes: list[Member]  # type: ignore[assignment]

    def __init__(self, directory: Path, count: int, **settings: Any) -> None:
        self._directory, self._settings = directory, settings
        self.first = VoterSet.of(
            VoterNode(number, os.urandom(16), (VoterEndpoint("CONTROLLER", "127.0.0.1", free_port()),), KRAFT_VERSIONS)
            for number in range(count)
        )
        self.bootstrap = tuple((one.endpoints[0].host, one.endpoints[0].port) for one in self.first.voters)
        self.nodes = []
        for number in range(count):
            node = self.new(number)
            node.settings.directory.mkdir(parents=True)
            write_first_voters(node.settings.directory, self.first.to_record(), 0)

    def new(self, number: int, **settings: Any) -> Member:
        """Create a controller without starting it. Its directory is empty unless it is an initial voter."""
        first = self.first if number not in [node.node_id for node in self.nodes] else VoterSet()
        node = Member(self._directory, number, first, self.bootstrap, **(self._settings | settings))
        self.nodes.append(node)
        return node

    async def join(self, number: int, **settings: Any) -> Member:
        """Create and start a controller that is not a voter."""
        node = self.new(number, **settings)
        await node.start()
        return node

    async def again(self, node: Member) -> Member:
        """Restart a member as a new node on the same directory."""
        fresh = node.again()
        self.nodes[self.nodes.index(node)] = fresh
        await fresh.start()
        return fresh


@asynccontextmanager
async def members_of(directory: Path, count: int, **settings: Any) -> AsyncIterator[Members]:
    """Yield a running quorum with dynamic voters. Stops it at the end."""
    quorum = Members(directory, count, **settings)
    try:
        await asyncio.gather(*(node.start() for node in quorum.nodes))
        yield quorum
    finally:
        for node in quorum.nodes:
            if node.is_running:
                await node.stop()
