"""A client's view of the cluster: its nodes, their addresses, and the coordinators of groups and transactional ids.

Owns the connections of Admin and Consumer, and the search for the node that a request must be sent to. Must not know
records: the native engine has its own connections for Produce and Fetch.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.coordinator_watch import CoordinatorWatch
from pybroker.client.errors import (
    BrokerError,
    ClientError,
    ClosedError,
    ConnectionLostError,
    UnknownBrokerError,
    UnreachableError,
    UnsupportedEndpointTypeError,
)
from pybroker.client.mismatches import refuse_mismatch
from pybroker.client.network.connection import Connection
from pybroker.client.network.retry_budget import is_retriable
from pybroker.client.network.retrying import retry, time_left_ms
from pybroker.client.network.server_list import ServerList
from pybroker.client.security import open_security
from pybroker.client.settings import ConnectionSettings
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.describe_cluster import (
    BROKERS,
    CONTROLLERS,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from pybroker.protocol.messages.find_coordinator import (
    FIRST_VERSION_WITH_MANY_KEYS,
    GROUP,
    TRANSACTION,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pybroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

Response = TypeVar("Response")
Arguments = ParamSpec("Arguments")

ANY = -1
"""Stands for any node instead of a node id."""
SEARCH_AGAIN = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Error codes after which the coordinator is found again."""
NOT_CONTROLLER = ErrorCode.NOT_CONTROLLER
"""The only error code of a metadata change after which Kafka's AdminClient retries."""
SEND_AGAIN = SEARCH_AGAIN | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
"""Transient error codes of a coordinator."""

_KINDS = {GROUP: "group", TRANSACTION: "transactional id"}
"""The kinds of keys of coordinators, for messages."""


class Cluster:
    """One client's view of a cluster. It belongs to one event loop."""

    def __init__(self, settings: ConnectionSettings, *, uses_controllers: bool = False) -> None:
        open_security(settings)
        self.settings = settings
        self.uses_controllers = uses_controllers
        """Whether the servers are controllers (KIP-919), which do not know the leaders of topics."""
        self._connections: dict[tuple[str, bool], Connection] = {}
        """By server, and whether it is for coordinators: a JoinGroup delays all requests behind it."""
        self._opening: dict[tuple[str, bool], asyncio.Lock] = {}
        """Serialize the opening of a connection, so that concurrent callers share it."""
        self._suspected: set[str] = set()
        """Servers that may require SASL, because of how a connection ended: a probe precedes the next connection."""
        self._servers = ServerList(settings)
        self._coordinators: dict[tuple[int, str], str] = {}
        self._watches: dict[tuple[int, str], CoordinatorWatch] = {}
        """By kind and key."""
        self._closed = False

    async def close(self) -> None:
        """Close every connection."""
        self._closed = True
        for watch in self._watches.values():
            watch.stop()
        connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            await connection.close()

    async def metadata(
        self, names: Sequence[str] | None, *, ids: Sequence[bytes] = (), create: bool = False
    ) -> tuple[str, MetadataResponse]:
        """Request metadata of topics by name and by id, of none (both empty) or of all (None), from any broker.

        A missing topic is created only where `create` is set and the broker allows it.
        Raises UnsupportedEndpointTypeError.
        """
        if self.uses_controllers:
            raise UnsupportedEndpointTypeError
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        if topics is not None:
            topics += [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids]
        if self._servers.is_rebootstrap_due(asyncio.get_running_loop().time()):
            await self._rebootstrap()
        async with self.node(ANY) as connection:
            request = MetadataRequest(topics=topics, allow_auto_topic_creation=create)
            response = await connection.query(request, MetadataResponse)
            if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED and await self._rebootstrap():
                raise ConnectionLostError(f"{connection.server} returned REBOOTSTRAP_REQUIRED")
            self._servers.learn({b.node_id: f"{b.host}:{b.port}" for b in response.brokers})
            return connection.server, response

    async def _rebootstrap(self) -> bool:
        """Discard the known nodes and use the bootstrap servers again (KIP-1102); false where
        metadata.recovery.strategy forbids it.
        """
        if not self._servers.rebootstrap():
            return False
        self._coordinators.clear()
        connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            await connection.close()
        return True

    @contextlib.asynccontextmanager
    async def controller(self) -> AsyncIterator[Connection]:
        """Yield a connection to a node that changes metadata: any KRaft broker, which forwards to the controller."""
        controller_id = (
            await self._find_controller() if self.uses_controllers else (await self.metadata(()))[1].controller_id
        )
        async with self.node(controller_id if controller_id in self._servers else ANY) as connection:
            yield connection

    @property
    def endpoint_type(self) -> int:
        """Return the endpoint type of the servers, as in DescribeCluster."""
        return CONTROLLERS if self.uses_controllers else BROKERS

    async def _find_controller(self) -> int:
        """Request the id of the active controller from any controller, -1 without one; update the addresses."""
        async with self.node(ANY) as connection:
            request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
            response = await connection.query(request, DescribeClusterResponse)
            raise_refused(connection.server, [("controllers", response.error_code, response.error_message)])
            self._servers.learn({node.broker_id: f"{node.host}:{node.port}" for node in response.brokers})
            return response.controller_id

    @contextlib.asynccontextmanager
    async def node(self, node_id: int) -> AsyncIterator[Connection]:
        """Yield a usable connection to a node; with `ANY` an open one, or one to the first server that responds."""
        yield await self._connect([self._servers[node_id]] if node_id in self._servers else self._any_servers())

    @contextlib.asynccontextmanager
    async def broker(self, broker_id: int) -> AsyncIterator[Connection]:
        """Yield a usable connection to the broker with this id. Raises UnknownBrokerError."""
        _, response = await self.metadata(())
        known = sorted(broker.node_id for broker in response.brokers)
        if broker_id not in known:
            ids = ", ".join(map(str, known))
            raise UnknownBrokerError(f"broker {broker_id} is not in the cluster; the brokers are {ids}")
        async with self.node(broker_id) as connection:
            yield connection

    def node_at(self, server: str) -> int:
        """Return the id of the node at an address, -1 for one that no response has named."""
        return self._servers.node_at(server)

    def server_timeout_ms(self, timeout_ms: int | None) -> int:
        """Return the broker's timeout for a request of a call with a timeout: at most request.timeout.ms."""
        longest_ms = self.settings.request_timeout_ms
        return time_left_ms(longest_ms if timeout_ms is None else min(longest_ms, timeout_ms))

    async def coordinator(self, key: str, kind: int = GROUP) -> Connection:
        """Return a connection to the coordinator of a group or transactional id, whose address is cached.

        Raises BrokerError.
        """
        place = kind, key
        if place not in self._coordinators:
            self._coordinators[place] = await self._find_coordinator(key, kind)
        connection = await self._connect([self._coordinators[place]], for_groups=True)
        if place not in self._watches:
            patience_s = self.settings.retry_backoff_max_ms / 1000
            self._watches[place] = CoordinatorWatch(functools.partial(self._find_coordinator, key, kind), patience_s)
        self._watches[place].watch(connection)
        return connection

    def known_coordinator(self, key: str, kind: int = GROUP) -> str:
        """Return the address of the coordinator of the last request; for messages."""
        return self._coordinators.get((kind, key), "the coordinator")

    def forget_coordinator(self, key: str, kind: int = GROUP) -> None:
        """Remove the cached coordinator, so that the next request finds it again."""
        self._coordinators.pop((kind, key), None)

    async def query_coordinator(
        self,
        key: str,
        query: Callable[[Connection], Awaitable[tuple[Response, int]]],
        again: Collection[int] = SEND_AGAIN,
        kind: int = GROUP,
    ) -> Response:
        """Send a request to a coordinator, with retries for at most default.api.timeout.ms while it is not ready.

        `query` returns the response and its error code, or 0; codes of `again` are retried. Raises the error of the
        last attempt: BrokerError for an error code, UnreachableError.
        """

        async def attempt() -> Response:
            try:
                connection = await self.coordinator(key, kind)
                response, code = await query(connection)
            except (ConnectionLostError, UnreachableError):
                self.forget_coordinator(key, kind)
                raise
            if code in SEARCH_AGAIN:
                self.forget_coordinator(key, kind)
            if code in again:
                raise BrokerError.of(connection.server, f"{_KINDS[kind]} {key!r}", code, None)
            return response

        def passes(failure: ClientError) -> bool:
            return failure.code in again if isinstance(failure, BrokerError) else is_retriable(failure)

        return await retry(self.settings, attempt, again=passes)

    async def _find_coordinator(self, key: str, kind: int) -> str:
        async with self.node(ANY) as connection:
            request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
            if connection.version_of(request) >= FIRST_VERSION_WITH_MANY_KEYS:
                request.key = ""
            else:
                request.coordinator_keys = []
            response = await connection.query(request, FindCoordinatorResponse)
            found = response.coordinators[0] if response.coordinators else response
            if found.error_code:
                raise BrokerError.of(
                    connection.server, f"coordinator of {_KINDS[kind]} {key!r}", found.error_code, found.error_message
                )
            self._servers.add(found.node_id, f"{found.host}:{found.port}")
            return self._servers[found.node_id]

    async def _connect(self, servers: Sequence[str], *, for_groups: bool = False) -> Connection:
        if self._closed:
            raise ClosedError("the client is closed")
        failures = []
        for server in servers:
            try:
                return await self._connect_to(server, for_groups)
            except ConnectionLostError as failure:
                self._servers.failed(server)
                node_id = self._servers.node_at(server)
                failures.append(str(failure) if node_id < 0 else f"broker {node_id} at {failure}")
        raise UnreachableError(f"no broker answered: {'; '.join(failures)}")

    async def _connect_to(self, server: str, for_groups: bool) -> Connection:
        key = (server, for_groups)
        async with self._opening.setdefault(key, asyncio.Lock()):
            connection = self._connections.get(key)
            if connection is None or not connection.usable:
                if connection is not None:
                    self._note_ended(connection)
                if server in self._suspected:
                    await refuse_mismatch(server, self.settings, without_tls=False)
                    self._suspected.discard(server)
                connection = await Connection.open(server, self.settings)
                if self._closed:
                    await connection.close()
                    raise ClosedError("the client is closed")
                self._connections[key] = connection
                self._servers.connected(server)
            return connection

    def _note_ended(self, connection: Connection) -> None:
        if connection.may_expect_sasl:
            self._suspected.add(connection.server)

    def _any_servers(self) -> list[str]:
        now = asyncio.get_running_loop().time()
        for key in [key for key, connection in self._connections.items() if not connection.usable]:
            self._note_ended(self._connections.pop(key))
            self._servers.failed(key[0])
        usable = [(key[0], connection) for key, connection in self._connections.items() if connection.usable]
        silent = dict.fromkeys(server for server, connection in usable if connection.is_silent(now))
        return self._servers.in_order([server for server, _ in usable], silent)


class Caller(Protocol):
    """An object whose calls are retried."""

    cluster: Cluster


Self_ = TypeVar("Self_", bound=Caller)


def retried(
    call: Callable[Concatenate[Self_, Arguments], Awaitable[Response]],
) -> Callable[Concatenate[Self_, Arguments], Coroutine[Any, Any, Response]]:
    """Wrap a method: retry it within its `timeout_ms`, or within default.api.timeout.ms where it has none."""

    async def within_budget(self: Self_, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Response:
        timeout_ms = kwargs.get("timeout_ms")
        assert timeout_ms is None or isinstance(timeout_ms, int)
        return await retry(self.cluster.settings, lambda: call(self, *args, **kwargs), timeout_ms=timeout_ms)

    functools.update_wrapper(within_budget, call)
    return within_budget


def raise_refused(
    server: str, outcomes: Iterable[tuple[str, int, str | None]], *, again: Collection[int] | None = (NOT_CONTROLLER,)
) -> None:
    """Raise the first error as BrokerError, with the others as its notes.

    `again` are the codes after which the whole call is retried, as far as Kafka calls them retriable; None: all.
    """
    refusals = [BrokerError.of(server, what, code, message) for what, code, message in outcomes if code]
    for refusal in refusals:
        refusal.final = again is not None and refusal.code not in again
    raise_first(refusals)


def partition_refusal(
    server: str, partition: TopicPartition, code: int, message: str | None = None
) -> BrokerError | None:
    """Return the error of one partition, None where the code is NONE."""
    if not code:
        return None
    return BrokerError.of(server, f"topic {partition.topic!r} partition {partition.partition}", code, message)


def raise_first(refusals: Iterable[BrokerError]) -> None:
    """Raise the first error, with the others as its notes. Does nothing without errors."""
    refused = list(refusals)
    if refused:
        first, *others = refused
        for other in others:
            first.add_note(str(other))
        raise first
