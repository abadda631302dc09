"""Requests of this node to the active controller, across controller elections.

Owns the connections to the active controller's listener, the search for this controller, and the retries until a
request times out. Must not know what a request contains: `ForwardingChannel` and `pybroker/net/forwarding.py` do.

A request is sent again after NOT_CONTROLLER, and after a connection that ended before its response. The first attempt
may have succeeded, so requests must tolerate duplicates, as with Kafka. Heartbeats have a channel of their own: a
controller handles the requests of one connection in order, and a slow request must not cost a broker its session.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pybroker.client.errors import AuthenticationError, ClientError, UnservedApiError
from pybroker.client.network.kept_connection import KeptConnection, server_name, settings_of_node
from pybroker.controller.errors import ControllerTimeoutError, NotControllerError, UnservedByControllerError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.schema import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pybroker.client.network.connection import Connection
    from pybroker.client.security.renewed import RenewedSecurity
    from pybroker.config.endpoint import Endpoint

log = logging.getLogger("pybroker.controller")

Response = TypeVar("Response", bound=Message)

_TRY_ANOTHER = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER})
_TRIES_OF_AN_ELECTION = 50
"""The first tries use the short backoff: an election takes less time than this many tries."""
_QUIET_S = 2.0
"""A shorter outage is an election and is not logged."""
_LAST_RESPONSES_S = 0.2
"""After a leader change, the former active controller has this long to respond to requests in flight."""
_REFUSED_MS = 1_000
"""Backoff after an authentication failure: only a changed configuration resolves it."""
_LATER = 10
"""Factor of the backoff after the first `_TRIES_OF_AN_ELECTION` tries."""


class ChannelSettings(NamedTuple):
    """Settings of one channel."""

    client_id: str
    request_timeout_ms: int
    """The longest wait for one response (`controller.socket.timeout.ms`); then the connection is closed."""
    retry_backoff_ms: int
    """Backoff before a retry (`controller.quorum.retry.backoff.ms`)."""
    connections: int
    """Number of connections: as many requests are processed in parallel."""
    max_in_progress: int
    """Maximum number of requests in flight; others wait for a slot until they time out."""
    security: RenewedSecurity | None = None
    """Security of the connections, None for plaintext."""
    unacknowledged_ms: int | None = None
    """A connection is closed when TCP data stays unacknowledged for this long; None for the kernel's timeout."""


class NodeToControllerChannel:
    """Sends requests to the active controller. Used from one event loop."""

    def __init__(
        self,
        name: str,
        settings: ChannelSettings,
        find_leader: Callable[[], Endpoint | None],
        bootstrap: Sequence[tuple[str, int]] = (),
    ) -> None:
        """`name` prefixes log messages. `find_leader` returns the address of the active controller, if this node knows
        it. Otherwise, or if that address fails, the `bootstrap` servers are tried round-robin.
        """
        self._name = name
        self._settings = settings
        self._find_leader = find_leader
        self._bootstrap = [server_name(host, port) for host, port in bootstrap]
        connecting = settings_of_node(settings.client_id, settings.request_timeout_ms)
        self._slots = [
            KeptConnection(connecting, settings.security, unacknowledged_ms=settings.unacknowledged_ms)
            for _ in range(settings.connections)
        ]
        self._capacity = asyncio.Semaphore(settings.max_in_progress)
        # The last result of `find_leader`, and the server in use. They are equal until that server fails.
        self._named: str | None = None
        self._active: str | None = None
        self._turn = 0
        # Set when `find_leader` names another leader, and then replaced by a fresh event.
        self._news = asyncio.Event()
        self._ending: set[asyncio.Task[None]] = set()
        # Why the controller cannot be reached, None while it can. A long outage is logged, and so is its end.
        self._outage: str | None = None
        self._outage_began = 0.0
        self._outage_reported = False
        self._closed = False

    async def send(self, request: Message, response: type[Response], *, timeout_ms: int) -> Response:
        """Return the active controller's response.

        Raises `ControllerTimeoutError` when none arrives in time, `UnservedByControllerError` if the controller does
        not support the API, and `NotControllerError` once the channel is closed.
        """
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                async with self._capacity:
                    return await self._query(request, response)
        except TimeoutError:
            reason = self._outage or "the controller did not respond"
            raise ControllerTimeoutError(
                f"{type(request).__name__}: no response of the active controller within {timeout_ms} ms: {reason}"
            ) from None

    def leader_changed(self) -> None:
        """Retry waiting requests now at the leader that `find_leader` names, and soon those in flight elsewhere."""
        news, self._news = self._news, asyncio.Event()
        news.set()
        target = self._target()
        for slot in self._slots:
            connection = slot.connection
            if connection is not None and connection.server != target and slot.in_progress:
                loop = asyncio.get_running_loop()
                loop.call_later(_LAST_RESPONSES_S, self._give_up, slot, connection)

    async def close(self) -> None:
        """Close the connections; waiting requests raise `NotControllerError`."""
        self._closed = True
        self._news.set()
        for slot in self._slots:
            await slot.close()

    async def _query(self, request: Message, response: type[Response]) -> Response:
        tries = 0
        while not self._closed:
            refused = False
            slot = min(self._slots, key=lambda slot: slot.in_progress)
            server = self._target()
            slot.in_progress += 1
            try:
                if server is None:
                    failure = "no controller is known"
                else:
                    connection = await slot.open(server)
                    reply = await connection.query(request, response, timeout_ms=self._settings.request_timeout_ms)
                    if getattr(reply, "error_code", ErrorCode.NONE) not in _TRY_ANOTHER:
                        self._succeed(server)
                        return reply
                    failure = f"{server} is not the active controller"
            except UnservedApiError as error:
                raise UnservedByControllerError(str(error)) from None
            except ClientError as error:
                failure, refused = str(error), isinstance(error, AuthenticationError)
            finally:
                slot.in_progress -= 1
            self._fail(server, failure)
            tries += 1
            rest_ms = self._settings.retry_backoff_ms * (1 if tries < _TRIES_OF_AN_ELECTION else _LATER)
            if refused:
                rest_ms = max(rest_ms, _REFUSED_MS)
            with suppress(TimeoutError):
                async with asyncio.timeout(rest_ms / 1000):
                    await self._news.wait()
        raise NotControllerError(f"{self._name}: this node is stopping")

    def _give_up(self, slot: KeptConnection, connection: Connection) -> None:
        """Close a connection to a former leader with requests in flight: a suspended process never responds."""
        if slot.connection is connection and slot.in_progress:
            ending = asyncio.ensure_future(connection.close())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    def _target(self) -> str | None:
        """Return the server to use: the leader that the quorum names, unless it has failed since it was named."""
        leader = self._find_leader()
        named = None if leader is None else server_name(leader.host, leader.port)
        if named is not None and named != self._named:
            self._named = self._active = named
        if self._active is not None:
            return self._active
        candidates = [*([self._named] if self._named is not None else []), *self._bootstrap]
        return candidates[self._turn % len(candidates)] if candidates else None

    def _succeed(self, server: str) -> None:
        self._active = server
        if self._outage_reported:
            log.info("%s: the active controller at %s responds again", self._name, server)
        self._outage, self._outage_reported = None, False

    def _fail(self, server: str | None, failure: str) -> None:
        if server is not None and self._active == server:
            self._active = None
        self._turn += 1
        now = asyncio.get_running_loop().time()
        if self._outage is None:
            self._outage_began = now
        elif now - self._outage_began >= _QUIET_S and not self._outage_reported and not self._closed:
            self._outage_reported = True
            log.warning(
                "%s: cannot reach the active controller for %.1f s: %s; retrying",
                self._name,
                now - self._outage_began,
                failure,
            )
        self._outage = failure
