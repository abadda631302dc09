"""Requests of this broker to other brokers by id: transaction markers, and requests to transaction coordinators.

Owns one connection to each of these brokers, on its registered inter-broker listener. Owns the backoff after failed
connections, and the limit of waiting requests. Must not know the content of requests.

A request is sent once. The caller handles a lost connection, because the retry may have to go to another broker. A
broker serves the requests of one connection in order, so requests that may take long have a channel of their own.
Requests to this broker itself are passed to its handlers without a socket.

Source: Kafka's InterBrokerSendThread, and the reconnect.backoff of its NetworkClient.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pybroker.client.errors import ClientError, ConnectionLostError
from pybroker.client.network.kept_connection import KeptConnection, server_name, settings_of_node
from pybroker.protocol.schema import Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.client.network.connection import Connection
    from pybroker.client.security.renewed import RenewedSecurity
    from pybroker.config.broker import BrokerConfig
    from pybroker.metadata.image import MetadataImage

log = logging.getLogger("pybroker.broker")

Response = TypeVar("Response", bound=Message)

_REQUEST_TIMEOUT_MS = 30_000
"""Timeout of the first request of a connection: Kafka's default `request.timeout.ms` of a broker."""
_BACKOFF_MS, _LONGEST_BACKOFF_MS = 50, 1_000
_IN_PROGRESS, _WAITING = 16, 10_000


class BrokerChannelSettings(NamedTuple):
    """The settings of a channel."""

    node_id: int
    """The id of this broker."""
    listener: str
    """Name of the inter-broker listener."""
    max_idle_ms: int
    """An idle connection is closed after this time; a negative value disables this."""
    security: RenewedSecurity | None = None
    """The security settings of connections, None for plaintext."""
    unacknowledged_ms: int | None = None
    """A connection is closed if TCP data is not acknowledged for this time; None for the kernel's timeout."""
    backoff_ms: int = _BACKOFF_MS
    """The backoff after a failed connection, doubled at each further failure."""
    max_in_progress: int = _IN_PROGRESS
    """Maximum requests in flight to one broker. Others wait, at most until their timeout."""
    max_waiting: int = _WAITING
    """Maximum waiting and in-flight requests to one broker. Further ones fail at once."""


class BrokerChannel:
    """Sends requests to other brokers. Used from one event loop."""

    def __init__(self, name: str, settings: BrokerChannelSettings, image: Callable[[], MetadataImage]) -> None:
        """`name` is the prefix of log messages. `image` returns the newest published image."""
        self._name = name
        self._settings = settings
        self._image = image
        self._here: Callable[[Message], Awaitable[Message]] | None = None
        # The brokers with requests, until they are fenced or idle.
        self._peers: dict[int, _Peer] = {}
        self._ending: set[asyncio.Future[None]] = set()
        self._closed = False

    def serve_here(self, respond: Callable[[Message], Awaitable[Message]]) -> None:
        """Pass requests to this broker itself to `respond`. Called when this broker serves requests."""
        self._here = respond

    async def send(self, node_id: int, request: Message, response: type[Response], *, timeout_ms: int) -> Response:
        """Send a request to a broker, in the highest common version, and return the response.

        Raises ConnectionLostError without a response: the broker is not registered, fenced or unreachable, the
        connection is closed, `timeout_ms` expires, too many requests wait, or this broker is stopping. If a sent
        request times out, its connection is closed, and all its other requests fail too. Raises AuthenticationError if
        the broker rejects this broker's credentials, and UnservedApiError if it does not support the API. Requests to
        this broker itself are not encoded: the handler receives `request`, and its response object is returned.
        """
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        if self._closed:
            raise ConnectionLostError(f"{self._name}: this broker is stopping")
        if node_id == self._settings.node_id:
            return await self._query_here(request, response, deadline)
        self._server_of(node_id)  # Raises before any state is created for the broker.
        peer = self._peers.get(node_id)
        if peer is None:
            peer = self._peers[node_id] = _Peer(self._settings)
        if peer.count >= self._settings.max_waiting:
            raise ConnectionLostError(
                f"{self._name}: {peer.count} requests wait for broker {node_id}, which is the maximum"
            )
        peer.count += 1
        try:
            return await self._query(node_id, peer, request, response, deadline)
        except TimeoutError:
            raise ConnectionLostError(
                f"{self._name}: {type(request).__name__} was not sent to broker {node_id} within {timeout_ms} ms"
                + (f": {peer.failure}" if peer.failure else "")
            ) from None
        finally:
            peer.count -= 1
            self._expect_idleness(node_id, peer)

    def follow(self, image: MetadataImage) -> None:
        """Apply a newer image: requests to removed or fenced brokers fail at once."""
        for node_id in list(self._peers):
            registered = image.cluster.brokers.get(node_id)
            if registered is None or registered.fenced:
                self._leave(node_id, "the broker is fenced, or no longer in the metadata")

    async def close(self) -> None:
        """Close all connections. Waiting requests raise ConnectionLostError."""
        self._closed = True
        self._here = None
        for node_id in list(self._peers):
            self._leave(node_id, "this broker is stopping")
        if self._ending:
            await asyncio.wait(self._ending)

    async def _query_here(self, request: Message, response: type[Response], deadline: float) -> Response:
        if self._here is None:
            raise ConnectionLostError(f"{self._name}: this broker does not serve requests yet")
        try:
            async with asyncio.timeout_at(deadline):
                reply = await self._here(request)
        except TimeoutError:
            raise ConnectionLostError(
                f"{self._name}: {type(request).__name__}: this broker did not process its own request in time"
            ) from None
        assert isinstance(reply, response)
        return reply

    async def _query(
        self, node_id: int, peer: _Peer, request: Message, response: type[Response], deadline: float
    ) -> Response:
        async with asyncio.timeout_at(deadline):
            await peer.capacity.acquire()
        try:
            async with asyncio.timeout_at(deadline):
                connection = await self._connection(node_id, peer)
                await connection.writable()
            left_ms = int((deadline - asyncio.get_running_loop().time()) * 1000)
            return await connection.query(request, response, timeout_ms=max(left_ms, 1))
        finally:
            peer.capacity.release()

    async def _connection(self, node_id: int, peer: _Peer) -> Connection:
        server = self._server_of(node_id)
        if peer.is_left:
            raise ConnectionLostError(f"{server}: {peer.failure}")
        kept = peer.kept.to(server)
        if kept is not None:
            return kept
        if peer.opening is None or peer.opening_to != server:
            # All waiting requests share one attempt to connect, so no request waits for several attempts.
            peer.opening_to = server
            peer.opening = asyncio.ensure_future(self._open(node_id, peer, server))
            peer.opening.add_done_callback(peer.opened)
        return await asyncio.shield(peer.opening)

    async def _open(self, node_id: int, peer: _Peer, server: str) -> Connection:
        rest_s = peer.rest_s(asyncio.get_running_loop().time(), server)
        try:
            await asyncio.sleep(max(rest_s, 0))
            connection = await peer.kept.open(server)
        except asyncio.CancelledError:
            raise ConnectionLostError(f"{server}: {peer.failure}") from None
        except ClientError as error:
            if not peer.failures:
                log.warning(
                    "%s: cannot reach broker %d: %s. Retrying with the next request", self._name, node_id, error
                )
            peer.failed(str(error), asyncio.get_running_loop().time(), server, self._settings.backoff_ms)
            raise
        if peer.failures:
            log.info("%s: connected to broker %d at %s again", self._name, node_id, server)
        peer.failures, peer.failure = 0, ""
        return connection

    def _server_of(self, node_id: int) -> str:
        registered = self._image().cluster.brokers.get(node_id)
        if registered is None:
            raise ConnectionLostError(f"{self._name}: the metadata has no broker {node_id}")
        if registered.fenced:
            raise ConnectionLostError(f"{self._name}: broker {node_id} is fenced")
        endpoint = registered.listeners.get(self._settings.listener)
        if endpoint is None:
            raise ConnectionLostError(
                f"{self._name}: broker {node_id} has no listener {self._settings.listener}, only "
                f"{', '.join(sorted(registered.listeners))}"
            )
        return server_name(*endpoint)

    def _expect_idleness(self, node_id: int, peer: _Peer) -> None:
        """Start the idle timer of a connection, unless it runs. It checks the idle time when it fires."""
        loop, idle_ms = asyncio.get_running_loop(), self._settings.max_idle_ms
        peer.used_at = loop.time()
        if idle_ms >= 0 and peer.idle_timer is None and not peer.is_left:
            peer.idle_timer = loop.call_later(idle_ms / 1000, self._check_idleness, node_id, peer)

    def _check_idleness(self, node_id: int, peer: _Peer) -> None:
        loop, idle_s = asyncio.get_running_loop(), self._settings.max_idle_ms / 1000
        idle_since = loop.time() if peer.count else peer.used_at
        if idle_since + idle_s > loop.time():
            peer.idle_timer = loop.call_at(idle_since + idle_s, self._check_idleness, node_id, peer)
        else:
            self._leave(node_id, "the connection was idle")

    def _leave(self, node_id: int, why: str) -> None:
        peer = self._peers.pop(node_id)
        ending = asyncio.ensure_future(peer.leave(why))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


class _Peer:
    """The connection to one broker, and the requests to it."""

    def __init__(self, settings: BrokerChannelSettings) -> None:
        self.kept = KeptConnection(
            settings_of_node(str(settings.node_id), _REQUEST_TIMEOUT_MS),
            settings.security,
            unacknowledged_ms=settings.unacknowledged_ms,
        )
        self.capacity = asyncio.Semaphore(settings.max_in_progress)
        self.count = 0
        """Number of waiting and in-flight requests."""
        self.opening: asyncio.Future[Connection] | None = None
        self.opening_to = ""
        self.failures = 0
        """Number of consecutive failed connections."""
        self.failure = ""
        """The error of the last failure."""
        self.used_at = 0.0
        self.idle_timer: asyncio.TimerHandle | None = None
        self.is_left = False
        self._failed_server = ""
        self._again_at = 0.0

    def rest_s(self, now: float, server: str) -> float:
        """Return the rest of the backoff in seconds; 0 if the last failed attempt was to another server."""
        return self._again_at - now if self.failures and server == self._failed_server else 0.0

    def failed(self, why: str, now: float, server: str, backoff_ms: int) -> None:
        """Record a failed connection."""
        self.failure, self._failed_server = why, server
        self._again_at = now + min(backoff_ms * 2 ** min(self.failures, 16), _LONGEST_BACKOFF_MS) / 1000
        self.failures += 1

    def opened(self, opening: asyncio.Future[Connection]) -> None:
        """End an attempt to connect. Its exception was raised to the waiting requests."""
        if not opening.cancelled():
            opening.exception()
        if self.opening is opening:
            self.opening = None

    async def leave(self, why: str) -> None:
        """Close the connection for good. Waiting requests fail."""
        self.is_left, self.failure = True, why
        if self.idle_timer is not None:
            self.idle_timer.cancel()
        if self.opening is not None:
            self.opening.cancel()
            await asyncio.wait([self.opening])
        if self.kept.connection is not None:
            self.kept.connection.give_up(why)
        await self.kept.close()


class BrokerChannels(NamedTuple):
    """The channels to other brokers, by the kind of request."""

    markers: BrokerChannel
    """WriteTxnMarkers from the transaction coordinator to leaders. The response waits for the commit of the markers."""
    verification: BrokerChannel
    """AddPartitionsToTxn from leaders to the transaction coordinator. A Produce request waits for the response."""

    def serve_here(self, respond: Callable[[Message], Awaitable[Message]]) -> None:
        """Pass requests to this broker itself to `respond`."""
        for channel in self:
            channel.serve_here(respond)

    def follow(self, image: MetadataImage) -> None:
        """Apply a newer image."""
        for channel in self:
            channel.follow(image)

    async def close(self) -> None:
        """Close all connections. Waiting requests raise ConnectionLostError."""
        for channel in self:
            await channel.close()


def build_broker_channels(
    config: BrokerConfig, image: Callable[[], MetadataImage], security: RenewedSecurity | None
) -> BrokerChannels:
    """Return the channels to other brokers; `security` applies to their connections, None for plaintext."""
    # This broker closes an idle connection before the other broker does: a request sent at that moment would be lost.
    idle_ms = config.connections_max_idle_ms * 9 // 10
    settings = BrokerChannelSettings(
        config.node_id,
        config.inter_broker_listener,
        idle_ms,
        security,
        unacknowledged_ms=config.controller_quorum_request_timeout_ms,
    )
    return BrokerChannels(
        BrokerChannel("markers of transactions", settings, image),
        BrokerChannel("verification of transactions", settings, image),
    )
