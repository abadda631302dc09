"""Connections to the other voters: one to each, which carries messages in one direction.

Owns connecting and reconnecting. A message that cannot be sent now is dropped, and the voter is reported as
unreachable: Raft repeats important messages. At most `MOST_UNSENT` bytes wait for one voter. Must not know messages,
nor the leader. Responses only contain whether the messages were accepted.

A closed connection is reopened at once. A port that refuses then shows that the process has ended (ADR 0039). A
connection without a response is closed after `controller.quorum.request.timeout.ms`, which is no sign of a failed
process: the process may be suspended, or the network partitioned (ADR 0099).

With dynamic voters, a frame may contain the sender's endpoints, and the response the leader's endpoint: so unknown
replicas are found (docs/adr/0049).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING

import msgspec

from pybroker.client.errors import AuthenticationError, ClientError
from pybroker.controller.quorum.transport.closed_by_peer import is_closed_by_peer
from pybroker.controller.quorum.transport.response_timer import ResponseTimer
from pybroker.controller.quorum.transport.secured_stream import SecuredStream
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode, ProtocolError
from pybroker.protocol.header import RequestHeader, skip_tagged
from pybroker.protocol.messages.raft_messages import Listener, RaftMessagesRequest, RaftMessagesResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pybroker.controller.quorum.settings import QuorumSettings
    from pybroker.controller.quorum.transport.secured_stream import SecuredStream

log = logging.getLogger("pybroker.controller")

MOST_UNSENT = 32 << 20
"""Maximum number of bytes that wait for a slow voter."""
_VERSION = 0
_HEADER_VERSION = 2
_LONGEST_RESPONSE = 1 << 12
_LONGEST_BACKOFF_S = 0.5
_REFUSED_BACKOFF_S = 2.0
_CORRELATION_ID = 4


class PeerEvents(msgspec.Struct, frozen=True):
    """Callbacks of a peer; peers are identified by their keys."""

    connected: Callable[[int], None]
    """The peer is connected."""
    lost: Callable[[int], None]
    """Messages to the peer may be lost."""
    refused: Callable[[int], None]
    """The peer's connection ended, and its port refuses another one."""
    hung_up: Callable[[int], None] = lambda _key: None
    """The peer has closed its connection; called once or twice for each end."""
    leader_found: Callable[[str, int], None] = lambda _host, _port: None
    """The peer has returned the leader's endpoint."""


class PeerAddress(msgspec.Struct, frozen=True):
    """The address of a replica."""

    node_id: int
    """-1 if only the address is known."""
    host: str
    port: int


class Peers:
    """The other replicas that this one sends messages to. Used from one event loop."""

    def __init__(self, settings: QuorumSettings, events: PeerEvents) -> None:
        """Create an object without peers; `update` sets them."""
        self._settings, self._events = settings, events
        self._peers: dict[int, Peer] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def connected(self) -> int:
        """Number of connected peers."""
        return sum(peer.is_connected for peer in self._peers.values())

    def reaches(self, key: int) -> bool:
        """Return whether a peer is connected."""
        peer = self._peers.get(key)
        return peer is not None and peer.is_connected

    def address(self, key: int) -> PeerAddress | None:
        """Return the address of a peer, None if it is unknown."""
        peer = self._peers.get(key)
        return None if peer is None else peer.address

    def update(self, addresses: Mapping[int, PeerAddress], *, locates: bool = False) -> None:
        """Connect to exactly these peers, by key; with `locates`, send them this node's endpoints."""
        loop = asyncio.get_running_loop()
        for key, peer in list(self._peers.items()):
            if addresses.get(key) != peer.address:
                del self._peers[key]
                closing = loop.create_task(peer.stop())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
        for key, address in addresses.items():
            if key not in self._peers:
                peer = self._peers[key] = Peer(key, address, self._settings, self._events, locates=locates)
                peer.start()

    def announce(self) -> None:
        """Send this node's endpoints to all connected peers."""
        for peer in self._peers.values():
            if peer.is_connected:
                peer.announce()

    def poll(self) -> None:
        """Poll the sockets of all peers, and report closed connections that the event loop has not processed yet."""
        for peer in self._peers.values():
            peer.poll()

    def send(self, messages: Sequence[tuple[int, bytes]]) -> None:
        """Send messages to their replicas, as one frame for each replica."""
        by_peer: dict[int, list[bytes]] = {}
        for key, message in messages:
            by_peer.setdefault(key, []).append(message)
        for key, own in by_peer.items():
            peer = self._peers.get(key)
            if peer is not None:
                peer.send(own)
            else:
                self._events.lost(key)

    async def stop(self) -> None:
        """Close the connections."""
        peers, self._peers = self._peers, {}
        await asyncio.gather(*(peer.stop() for peer in peers.values()), *self._closing)


class Peer:
    """The connection to one other replica."""

    def __init__(
        self, key: int, address: PeerAddress, settings: QuorumSettings, events: PeerEvents, *, locates: bool
    ) -> None:
        """Create a peer that is not connected."""
        self._key = key
        self.address = address
        """The peer's address."""
        self._settings = settings
        self._events = events
        self._locates = locates
        # Why the peer rejects messages; logged once.
        self._reason: str | None = None
        # Whether a connection was closed because a response was missing, and no response has arrived since. Such an
        # outage is logged at its beginning and at its end, however many connections are opened meanwhile.
        self._is_silent = False
        # Whether a failure to connect is logged; the next one is not.
        self._is_failure_logged = False
        self._stream: Stream | SecuredStream | None = None
        self._task: asyncio.Task[None] | None = None
        self._correlation_ids = itertools.count(1)

    @property
    def is_connected(self) -> bool:
        """Whether messages can be sent now."""
        return self._stream is not None and not self._stream.ended.done()

    def poll(self) -> None:
        """Report a peer that has closed its connection, even if the loop has not processed it yet."""
        if self.is_connected and self._stream is not None and self._stream.is_closed_by_peer:
            self._events.hung_up(self._key)

    def start(self) -> None:
        """Start connecting."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"voter {self.address.node_id}")

    def send(self, messages: list[bytes]) -> None:
        """Send messages, or drop them."""
        if not self.is_connected or self._stream is None:
            self._events.lost(self._key)
            return
        if self._stream.unsent > MOST_UNSENT:
            log.warning("Closing the connection to %s: it reads too slowly", self._name)
            self._stream.close()
            self._events.lost(self._key)
            return
        self._write(self._request(messages))

    def announce(self) -> None:
        """Send this node's endpoints."""
        self._write(self._request([], locates=True))

    def _write(self, request: RaftMessagesRequest) -> None:
        if isinstance(self._stream, Stream):
            self._stream.write(self._frame(request))
        elif self._stream is not None:
            self._stream.write(request)

    def _request(self, messages: list[bytes], *, locates: bool = False) -> RaftMessagesRequest:
        settings = self._settings
        listeners = [Listener(name=one.listener, host=one.host, port=one.port) for one in settings.endpoints]
        return RaftMessagesRequest(
            cluster_id=settings.cluster_id,
            from_id=settings.node_id,
            from_directory_id=settings.directory_id,
            to_id=self.address.node_id,
            messages=messages,
            listeners=listeners if locates else [],
        )

    def _frame(self, request: RaftMessagesRequest) -> bytes:
        header = RequestHeader(
            request_api_key=RaftMessagesRequest.__message__.api_key or 0,
            request_api_version=_VERSION,
            correlation_id=next(self._correlation_ids) & 0x7FFFFFFF,
            client_id=f"voter-{self._settings.node_id}",
        )
        frame = encode(header, _HEADER_VERSION) + encode(request, _VERSION)
        return len(frame).to_bytes(4) + frame

    @property
    def _name(self) -> str:
        address = self.address
        return (
            f"voter {address.node_id}" if address.node_id >= 0 else f"the controller at {address.host}:{address.port}"
        )

    async def stop(self) -> None:
        """Close the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._stream is not None:
            self._stream.close()

    async def _run(self) -> None:
        was_reached = False
        backoff_s = self._settings.retry_backoff_ms / 1000
        pause_s = backoff_s
        while True:
            try:
                stream = await self._connect()
            except (OSError, ClientError, ValueError) as error:
                if was_reached and isinstance(error, ConnectionRefusedError):
                    self._events.refused(self._key)
                if not self._is_failure_logged:
                    # Failed authentication, an untrusted certificate or an invalid host need a change of the
                    # configuration.
                    level = logging.INFO if isinstance(error, OSError) else logging.WARNING
                    why = str(error) or "no response in time"
                    log.log(level, "Cannot connect to %s, retrying: %s", self._name, why)
                was_reached, self._is_failure_logged = False, True
                if isinstance(error, AuthenticationError):
                    # Authentication will fail again until the configuration is changed.
                    pause_s = _REFUSED_BACKOFF_S
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_BACKOFF_S)
                continue
            if not self._is_silent:
                self._is_failure_logged = False
                if self._reason is None:
                    log.info("Connected to %s at %s:%d", self._name, self.address.host, self.address.port)
            self._stream, was_reached, pause_s = stream, True, backoff_s
            if self._locates:
                self.announce()
            self._events.connected(self._key)
            self._note_end(await stream.ended, stream)
            if not (stream.is_refused or stream.is_silent):
                self._events.hung_up(self._key)
            self._events.lost(self._key)
            if stream.is_refused:  # The peer is not of this quorum, so there is no hurry.
                await asyncio.sleep(_LONGEST_BACKOFF_S)

    def _note_end(self, reason: str, stream: Stream | SecuredStream) -> None:
        """Log why a connection ended: a repeated rejection once, and missing responses once until one arrives."""
        is_logged = self._is_silent if stream.is_silent else reason == self._reason
        if not (stream.is_refused or stream.is_silent):
            log.info("The connection to %s ended: %s", self._name, reason)
        elif not is_logged:
            log.warning("Closing the connection to %s: %s", self._name, reason)
        self._reason = reason if stream.is_refused else None
        self._is_silent = self._is_silent or stream.is_silent

    async def _connect(self) -> Stream | SecuredStream:
        """Open a connection. Raises `OSError` (which includes `TimeoutError`), `ValueError` for a host name that is too
        long, and `ClientError` if a secured connection fails, for example by authentication.
        """
        settings, loop = self._settings, asyncio.get_running_loop()
        async with asyncio.timeout(settings.request_timeout_ms / 1000):
            if settings.security is not None:
                return await SecuredStream.open(
                    self.address.host,
                    self.address.port,
                    f"voter-{settings.node_id}",
                    settings.request_timeout_ms,
                    settings.security,
                    self._check_response,
                )
            _, stream = await loop.create_connection(
                lambda: Stream(loop.create_future(), settings.request_timeout_ms, self._check_response),
                self.address.host,
                self.address.port,
            )
        return stream

    def _check_response(self, response: RaftMessagesResponse) -> str | None:
        """Return the reason to close the connection, None for a response without an error.

        The response may contain the leader's endpoint.
        """
        if self._is_silent:
            self._is_silent = self._is_failure_logged = False
            log.info("%s responds again", self._name)
        if response.error_code:
            code = response.error_code
            known = code in ErrorCode._value2member_map_
            return f"it rejects messages with {ErrorCode(code).name if known else code}"
        if response.leader_host:
            self._events.leader_found(response.leader_host, response.leader_port)
        return None


class Stream(asyncio.Protocol):
    """One connection: sends frames, receives responses."""

    def __init__(
        self, ended: asyncio.Future[str], timeout_ms: int, check_response: Callable[[RaftMessagesResponse], str | None]
    ) -> None:
        """Create a stream that is not connected.

        Args:
            ended: gets the reason for its end.
            timeout_ms: the longest wait for a response, by the rule of `ResponseTimer`.
            check_response: returns the reason to close the connection, None for none.
        """
        self.ended = ended
        self._timeout_ms = timeout_ms
        self._check_response = check_response
        self.is_refused = False
        """Whether the peer rejects this voter's messages."""
        self.is_silent = False
        """Whether this end has closed the connection because a response was missing."""
        self._responses: ResponseTimer | None = None
        self._transport: asyncio.Transport | None = None
        self._descriptor = -1
        self._received = bytearray()

    @property
    def unsent(self) -> int:
        """Bytes in the write buffer, which the socket has not accepted yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def is_closed_by_peer(self) -> bool:
        """Whether the peer has closed the connection. The event loop may not have processed it."""
        return self._descriptor >= 0 and is_closed_by_peer(self._descriptor)

    def write(self, frame: bytes) -> None:
        """Send a frame."""
        if self._transport is not None and self._responses is not None:
            self._responses.sent(len(frame))
            self._transport.write(frame)

    def close(self) -> None:
        """Close the connection; unsent bytes are dropped."""
        if self._responses is not None:
            self._responses.stop()
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the response timer."""
        self._transport = transport  # type: ignore[assignment]
        self._descriptor = transport.get_extra_info("socket").fileno()
        self._responses = ResponseTimer(self._timeout_ms, self._descriptor, lambda: self.unsent, self._expired)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the response timer and report the end."""
        if self._responses is not None:
            self._responses.stop()
        self._end(str(exc) if exc else "closed by the other end")

    def data_received(self, data: bytes) -> None:
        """Process responses: an error ends the connection."""
        self._received += data
        while len(self._received) >= 4:
            size = int.from_bytes(self._received[:4])
            if not _CORRELATION_ID < size <= _LONGEST_RESPONSE:
                self._refuse(f"invalid size of a response: {size} bytes")
                return
            if len(self._received) < 4 + size:
                return
            body = bytes(self._received[4 + _CORRELATION_ID : 4 + size])
            del self._received[: 4 + size]
            self._take_response(body)

    def _take_response(self, body: bytes) -> None:
        if self._responses is not None:
            self._responses.received()
        try:
            response, _ = decode(RaftMessagesResponse, body, _VERSION, skip_tagged(body))
        except ProtocolError as error:
            self._refuse(f"unreadable response: {error}")
            return
        reason = self._check_response(response)
        if reason is not None:
            self._refuse(reason)

    def _expired(self, reason: str) -> None:
        self.is_silent = True
        self._end(reason)
        self.close()

    def _refuse(self, reason: str) -> None:
        self.is_refused = True
        self._end(reason)
        self.close()

    def _end(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)
