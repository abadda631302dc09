"""Requests of this broker to other brokers, by their ids: a transaction's markers, and questions to its coordinator.

Owns one connection to each broker that is asked, on the inter-broker listener that the metadata has of it, the rests
between connections that fail, and how much waits at once. Must not know what a request means.

A request is sent once: what a lost connection means is for the caller to decide, who may have to ask another broker
then. A broker answers the requests of one connection one after the other; so requests that may wait long at the other
end have a channel of their own. What this broker asks itself goes to its handlers without a socket.

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
"""Kafka's `request.timeout.ms` of a broker, for what has no time of its own: the first question of a connection."""
_BACKOFF_MS, _LONGEST_BACKOFF_MS = 50, 1_000
_UNDER_WAY, _WAITING = 16, 10_000


class BrokerChannelSettings(NamedTuple):
    """How a channel asks."""

    node_id: int
    """This broker."""
    listener: str
    """Name of the inter-broker listener."""
    max_idle_ms: int
    """A connection without a request for so long is closed; a negative value means never."""
    security: RenewedSecurity | None = None
    """What connections are secured with, None for plaintext."""
    unacknowledged_ms: int | None = None
    """A connection ends when the other broker's TCP acknowledges nothing for so long; None for the kernel's timeout."""
    backoff_ms: int = _BACKOFF_MS
    """The rest after a connection that failed; it doubles each time."""
    max_under_way: int = _UNDER_WAY
    """Requests to one broker that are sent and not answered; others wait until their time is over."""
    max_waiting: int = _WAITING
    """Requests to one broker that wait or are under way; more are refused at once."""


class BrokerChannel:
    """Asks other brokers. Used from one event loop."""

    def __init__(self, name: str, settings: BrokerChannelSettings, image: Callable[[], MetadataImage]) -> None:
        """`name` begins the lines of the log; `image` returns the newest published image."""
        self._name = name
        self._settings = settings
        self._image = image
        self._here: Callable[[Message], Awaitable[Message]] | None = None
        # Those that were asked, until they are fenced or idle.
        self._peers: dict[int, _Peer] = {}
        self._ending: set[asyncio.Future[None]] = set()
        self._closed = False

    def serve_here(self, answer: Callable[[Message], Awaitable[Message]]) -> None:
        """Have requests to this broker itself answered by `answer`, once it serves requests."""
        self._here = answer

    async def send(self, node_id: int, request: Message, response: type[Response], *, timeout_ms: int) -> Response:
        """Return the answer of a broker, in the highest version that both sides speak.

        Raises ConnectionLostError when none comes: the metadata has no such broker, or a fenced one, it cannot be
        reached, the connection ends before the answer, `timeout_ms` is over, too much waits for it, or this broker is
        stopping. After the time is over for a request that was sent, the connection is given up, and what else is under
        way by it fails as well. Raises AuthenticationError for a broker that does not let this one in, UnservedApiError
        for one that does not speak the API. What this broker asks itself is not encoded: request and response are the
        objects that the handler gets and returns.
        """
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        if self._closed:
            raise ConnectionLostError(f"{self._name}: this broker is stopping")
        if node_id == self._settings.node_id:
            return await self._ask_here(request, response, deadline)
        self._server_of(node_id)  # Refused before anything is kept for it.
        peer = self._peers.get(node_id)
        if peer is None:
            peer = self._peers[node_id] = _Peer(self._settings)
        if peer.count >= self._settings.max_waiting:
            raise ConnectionLostError(
                f"{self._name}: {peer.count} requests wait for broker {node_id}, which is as many as may"
            )
        peer.count += 1
        try:
            return await self._ask(node_id, peer, request, response, deadline)
        except TimeoutError:
            raise ConnectionLostError(
                f"{self._name}: {type(request).__name__} was not sent to broker {node_id} within {timeout_ms} ms"
                + (f": {peer.failure}" if peer.failure else "")
            ) from None
        finally:
            peer.count -= 1
            self._expect_idleness(node_id, peer)

    def follow(self, image: MetadataImage) -> None:
        """Take note of a newer image: what a broker that is gone or fenced was asked fails at once."""
        for node_id in list(self._peers):
            registered = image.cluster.brokers.get(node_id)
            if registered is None or registered.fenced:
                self._leave(node_id, "the broker is fenced, or gone from the metadata")

    async def close(self) -> None:
        """End the connections; requests that wait raise ConnectionLostError."""
        self._closed = True
        self._here = None
        for node_id in list(self._peers):
            self._leave(node_id, "this broker is stopping")
        if self._ending:
            await asyncio.wait(self._ending)

    async def _ask_here(self, request: Message, response: type[Response], deadline: float) -> Response:
        if self._here is None:
            raise ConnectionLostError(f"{self._name}: this broker does not serve requests yet")
        try:
            async with asyncio.timeout_at(deadline):
                answer = await self._here(request)
        except TimeoutError:
            raise ConnectionLostError(
                f"{self._name}: {type(request).__name__}: this broker did not answer itself in time"
            ) from None
        assert isinstance(answer, response)
        return answer

    async def _ask(
        self, node_id: int, peer: _Peer, request: Message, response: type[Response], deadline: float
    ) -> Response:
        async with asyncio.timeout_at(deadline):
            await peer.room.acquire()
        try:
            async with asyncio.timeout_at(deadline):
                connection = await self._connection(node_id, peer)
                await connection.writable()
            left_ms = int((deadline - asyncio.get_running_loop().time()) * 1000)
            return await connection.ask(request, response, timeout_ms=max(left_ms, 1))
        finally:
            peer.room.release()

    async def _connection(self, node_id: int, peer: _Peer) -> Connection:
        server = self._server_of(node_id)
        if peer.is_left:
            raise ConnectionLostError(f"{server}: {peer.failure}")
        kept = peer.kept.to(server)
        if kept is not None:
            return kept
        if peer.opening is None or peer.opening_to != server:
            # All that wait have the outcome of one try: none of them waits for the tries of others before it.
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
        """Close the connection once it has been idle for long. One timer runs for each, and checks when it ends."""
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
    """What is kept of one broker."""

    def __init__(self, settings: BrokerChannelSettings) -> None:
        self.kept = KeptConnection(
            settings_of_node(str(settings.node_id), _REQUEST_TIMEOUT_MS),
            settings.security,
            unacknowledged_ms=settings.unacknowledged_ms,
        )
        self.room = asyncio.Semaphore(settings.max_under_way)
        self.count = 0
        """Requests that wait or are under way."""
        self.opening: asyncio.Future[Connection] | None = None
        self.opening_to = ""
        self.failures = 0
        """Connections that failed one after the other."""
        self.failure = ""
        """Why the last one failed."""
        self.used_at = 0.0
        self.idle_timer: asyncio.TimerHandle | None = None
        self.is_left = False
        self._failed_server = ""
        self._again_at = 0.0

    def rest_s(self, now: float, server: str) -> float:
        """Return how long the next try waits; a server that was not tried yet is tried at once."""
        return self._again_at - now if self.failures and server == self._failed_server else 0.0

    def failed(self, why: str, now: float, server: str, backoff_ms: int) -> None:
        """Note a connection that failed."""
        self.failure, self._failed_server = why, server
        self._again_at = now + min(backoff_ms * 2 ** min(self.failures, 16), _LONGEST_BACKOFF_MS) / 1000
        self.failures += 1

    def opened(self, opening: asyncio.Future[Connection]) -> None:
        """Note that a try is over; what it failed by was raised where somebody waited for it."""
        if not opening.cancelled():
            opening.exception()
        if self.opening is opening:
            self.opening = None

    async def leave(self, why: str) -> None:
        """End the connection for good, and what waits for one."""
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
    """The ways to other brokers, by what is asked."""

    markers: BrokerChannel
    """WriteTxnMarkers, of the coordinator of transactions to leaders: waits until the markers are committed."""
    verification: BrokerChannel
    """AddPartitionsToTxn, of leaders to the coordinator of transactions: a Produce waits for it."""

    def serve_here(self, answer: Callable[[Message], Awaitable[Message]]) -> None:
        """Have requests to this broker itself answered by `answer`."""
        for channel in self:
            channel.serve_here(answer)

    def follow(self, image: MetadataImage) -> None:
        """Take note of a newer image."""
        for channel in self:
            channel.follow(image)

    async def close(self) -> None:
        """End the connections; requests that wait raise ConnectionLostError."""
        for channel in self:
            await channel.close()


def build_broker_channels(
    config: BrokerConfig, image: Callable[[], MetadataImage], security: RenewedSecurity | None
) -> BrokerChannels:
    """Return the channels; `security` is that of connections to other brokers, None for plaintext."""
    # A little sooner than the other end would close it: a request that crosses with that would be lost.
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
