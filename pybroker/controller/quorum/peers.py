"""The way to the other voters: one connection to each, on which messages go in one direction.

Owns connecting, and giving up: a message that cannot be sent now is dropped, as Raft sends what matters again, and the
voter is noted as unreachable. No more than `MOST_UNSENT` bytes wait for one voter. Must not know what messages say, nor
who leads. Answers say only whether the messages were taken.

A connection that ends is tried anew at once. A port that refuses then says that the process is gone (ADR 0039).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING, NamedTuple

from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode, ProtocolError
from pybroker.protocol.header import RequestHeader, skip_tagged
from pybroker.protocol.messages.raft_messages import RaftMessagesRequest, RaftMessagesResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pybroker.controller.quorum.settings import QuorumSettings, VoterAddress

log = logging.getLogger("pybroker.controller")

MOST_UNSENT = 32 << 20
"""Bytes that wait for a voter which reads too slowly."""
_VERSION = 0
_HEADER_VERSION = 2
_LONGEST_RESPONSE = 1 << 12
_LONGEST_BACKOFF_S = 0.5
_CORRELATION_ID = 4


class PeerEvents(NamedTuple):
    """Whom a peer reports to."""

    connected: Callable[[int], None]
    """The voter is reached."""
    lost: Callable[[int], None]
    """What was sent to the voter may be lost."""
    refused: Callable[[int], None]
    """The voter's connection ended, and its port refuses another one."""


class Peers:
    """The other voters. Used from one event loop."""

    def __init__(self, settings: QuorumSettings, events: PeerEvents) -> None:
        """Make the peers; nothing is connected before `start`."""
        own = settings.node_id
        self._peers = {
            address.node_id: Peer(address, settings, events) for address in settings.addresses if address.node_id != own
        }

    @property
    def connected(self) -> int:
        """How many other voters are reached now."""
        return sum(peer.is_connected for peer in self._peers.values())

    def reaches(self, voter: int) -> bool:
        """Return whether another voter is reached now."""
        peer = self._peers.get(voter)
        return peer is not None and peer.is_connected

    def start(self) -> None:
        """Begin to connect."""
        for peer in self._peers.values():
            peer.start()

    def send(self, messages: Sequence[tuple[int, bytes]]) -> None:
        """Send messages to the voters that they are for, as one frame for each voter."""
        by_voter: dict[int, list[bytes]] = {}
        for voter, message in messages:
            by_voter.setdefault(voter, []).append(message)
        for voter, own in by_voter.items():
            peer = self._peers.get(voter)
            if peer is not None:
                peer.send(own)

    async def stop(self) -> None:
        """End the connections."""
        await asyncio.gather(*(peer.stop() for peer in self._peers.values()))


class Peer:
    """One other voter."""

    def __init__(self, address: VoterAddress, settings: QuorumSettings, events: PeerEvents) -> None:
        """Make a peer that is not connected."""
        self._address = address
        self._settings = settings
        self._events = events
        self._stream: Stream | None = None
        self._task: asyncio.Task[None] | None = None
        self._correlation_ids = itertools.count(1)

    @property
    def is_connected(self) -> bool:
        """Whether messages can be sent now."""
        return self._stream is not None and not self._stream.ended.done()

    def start(self) -> None:
        """Begin to connect."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"voter {self._address.node_id}")

    def send(self, messages: list[bytes]) -> None:
        """Send messages, or drop them."""
        voter = self._address.node_id
        if not self.is_connected or self._stream is None:
            self._events.lost(voter)
            return
        if self._stream.unsent > MOST_UNSENT:
            log.warning("voter %d reads too slowly: its connection is closed", voter)
            self._stream.close()
            self._events.lost(voter)
            return
        settings = self._settings
        request = RaftMessagesRequest(
            cluster_id=settings.cluster_id,
            from_id=settings.node_id,
            from_directory_id=settings.directory_id,
            to_id=voter,
            messages=messages,
        )
        header = RequestHeader(
            request_api_key=RaftMessagesRequest.__message__.api_key or 0,
            request_api_version=_VERSION,
            correlation_id=next(self._correlation_ids) & 0x7FFFFFFF,
            client_id=f"voter-{settings.node_id}",
        )
        frame = encode(header, _HEADER_VERSION) + encode(request, _VERSION)
        self._stream.write(len(frame).to_bytes(4) + frame)

    async def stop(self) -> None:
        """End the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._stream is not None:
            self._stream.close()

    async def _run(self) -> None:
        voter, was_reached, is_said = self._address.node_id, False, False
        backoff_s = self._settings.retry_backoff_ms / 1000
        pause_s = backoff_s
        while True:
            try:
                stream = await self._connect()
            except OSError as error:
                if was_reached and isinstance(error, ConnectionRefusedError):
                    self._events.refused(voter)
                if not is_said:
                    log.info("voter %d cannot be reached and is tried again: %s", voter, error or "no answer in time")
                was_reached, is_said = False, True
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_BACKOFF_S)
                continue
            log.info("voter %d is reached at %s:%d", voter, self._address.host, self._address.port)
            self._stream, was_reached, is_said, pause_s = stream, True, False, backoff_s
            self._events.connected(voter)
            reason = await stream.ended
            log.info("the connection to voter %d ended: %s", voter, reason)
            self._events.lost(voter)
            if stream.is_refused:  # Its answers say that it is none of ours; there is no hurry.
                await asyncio.sleep(_LONGEST_BACKOFF_S)

    async def _connect(self) -> Stream:
        """Open a connection; raises `OSError`, to which `TimeoutError` belongs."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
            _, stream = await loop.create_connection(
                lambda: Stream(loop.create_future()), self._address.host, self._address.port
            )
        return stream


class Stream(asyncio.Protocol):
    """One connection: frames out, answers in."""

    def __init__(self, ended: asyncio.Future[str]) -> None:
        """Make a stream that is not connected; `ended` gets the reason for its end."""
        self.ended = ended
        self.is_refused = False
        """Whether the other end does not take this voter's messages."""
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()

    @property
    def unsent(self) -> int:
        """Bytes that the other end has not made room for."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def write(self, frame: bytes) -> None:
        """Send a frame."""
        if self._transport is not None:
            self._transport.write(frame)

    def close(self) -> None:
        """End the connection; what is not sent yet is dropped."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._end(str(exc) if exc else "closed by the other end")

    def data_received(self, data: bytes) -> None:
        """Look at answers: an error ends the connection."""
        self._received += data
        while len(self._received) >= 4:
            size = int.from_bytes(self._received[:4])
            if not _CORRELATION_ID < size <= _LONGEST_RESPONSE:
                self._refuse(f"an answer of {size} bytes")
                return
            if len(self._received) < 4 + size:
                return
            body = bytes(self._received[4 + _CORRELATION_ID : 4 + size])
            del self._received[: 4 + size]
            self._look_at(body)

    def _look_at(self, body: bytes) -> None:
        try:
            response, _ = decode(RaftMessagesResponse, body, _VERSION, skip_tagged(body))
        except ProtocolError as error:
            self._refuse(f"an unreadable answer: {error}")
            return
        if response.error_code:
            code = response.error_code
            known = code in ErrorCode._value2member_map_
            self._refuse(f"it refuses messages with {ErrorCode(code).name if known else code}")

    def _refuse(self, reason: str) -> None:
        self.is_refused = True
        log.warning("a connection to another voter is closed: %s", reason)
        self._end(reason)
        self.close()

    def _end(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)
