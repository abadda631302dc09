"""One connection to a broker, over asyncio: requests and responses of the Kafka protocol.

Owns one stream (`pybroker.client.network.stream`), the API versions of the broker, and the matching of responses to
requests. Must not know the meaning of an API. The native engine has its own connections for Produce and Fetch.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Mapping
from typing import Self, TypeVar

from pybroker import __version__
from pybroker.client.administration.topics import FeatureDescription
from pybroker.client.errors import (
    AuthenticationError,
    ClientError,
    ConnectionLostError,
    UnsendableError,
    UnservedApiError,
)
from pybroker.client.field_ranges import first_misfit
from pybroker.client.mismatches import refuse_mismatch
from pybroker.client.network.retrying import time_left_ms
from pybroker.client.network.signing_in import sign_in
from pybroker.client.network.stream import Stream, UnheardTlsError
from pybroker.client.settings import ConnectionSettings
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode, ProtocolError
from pybroker.protocol.header import RequestHeader, flexible, skip_tagged
from pybroker.protocol.messages import request_class, response_class
from pybroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pybroker.protocol.schema import Message

Response = TypeVar("Response", bound=Message)

_API_VERSIONS = 18
_LONGEST_RESPONSE = 1 << 30
_UNSENT_BYTES = 64 * 1024
"""The default high-water mark of asyncio, above which a writer must wait."""
_LONGEST_FIRST_RESPONSE = 1 << 20
"""The maximum size of the first responses, to ApiVersions and SASL. A larger size shows that the server is no Kafka
broker.
"""


class Connection:
    """One open connection. Several requests may be in flight; the broker responds in their order."""

    def __init__(self, server: str, settings: ConnectionSettings, stream: Stream) -> None:
        self.server = server
        self._settings = settings
        self._stream = stream
        self._correlation_ids = itertools.count(1)
        self._waiting: deque[tuple[int, asyncio.Future[bytes], float]] = deque()
        """Requests in flight: correlation id, future, and the time until which the broker may delay its response."""
        self._served: dict[int, tuple[int, int]] = {}
        self.features: dict[str, FeatureDescription] = {}
        """The features of the cluster from the last ApiVersions response (`learn_versions`)."""
        self._given_up = ""
        """The local reason why the connection was closed; empty where the broker closed it."""
        self._is_new = True
        """Only ApiVersions and SASL requests have been sent."""
        self._is_proven = False
        """The broker has responded to a later request."""
        self.may_expect_sasl = False
        """Whether the broker has closed the connection at the first request of a client without SASL."""
        self._renewal: asyncio.Task[None] | None = None
        """The pending re-authentication, after which other requests are sent (KIP-368)."""
        self._renewal_due: asyncio.TimerHandle | None = None
        self._receiver = asyncio.create_task(self._receive())

    @classmethod
    async def open(cls, server: str, settings: ConnectionSettings, *, unacknowledged_ms: int | None = None) -> Self:
        """Connect, negotiate API versions and authenticate. Raises ConnectionLostError, AuthenticationError.

        `unacknowledged_ms` is that of `Stream.open`.
        """
        host, _, port = server.rpartition(":")
        timeout_s = time_left_ms(settings.socket_connection_setup_timeout_ms) / 1000
        try:
            async with asyncio.timeout(timeout_s):
                stream = await Stream.open(
                    host.strip("[]"), int(port), settings.tls, unacknowledged_ms=unacknowledged_ms
                )
        except AuthenticationError as error:
            raise AuthenticationError(f"{server}: {error}") from None
        except (OSError, TimeoutError, ValueError) as error:
            if isinstance(error, UnheardTlsError):
                await refuse_mismatch(server, settings, without_tls=True)
            raise ConnectionLostError(
                f"{server}: {str(error) or f'no connection within {timeout_s * 1000:.0f} ms'}"
            ) from None
        return await cls.over(server, settings, stream)

    @classmethod
    async def over(cls, server: str, settings: ConnectionSettings, stream: Stream) -> Self:
        """Negotiate API versions and authenticate on an open stream. Raises as `open`."""
        connection = cls(server, settings, stream)
        try:
            await connection.learn_versions()
            await connection._sign_in()
            connection._is_new = False
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _sign_in(self) -> None:
        if self._settings.credentials is None:
            return
        again_s = await sign_in(self, self._settings.credentials)
        if again_s is not None:
            self._renewal_due = asyncio.get_running_loop().call_later(again_s, self._begin_renewal)

    def _begin_renewal(self) -> None:
        if self.usable:
            self._renewal = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        """Re-authenticate. Responses to earlier requests arrive before, as the broker keeps the order of requests."""
        try:
            await self._sign_in()
        except ClientError as error:
            self.give_up(str(error).removeprefix(f"{self.server}: "))
        finally:
            self._renewal = None

    async def query(
        self, request: Message, response: type[Response], max_version: int = 32767, *, timeout_ms: int | None = None
    ) -> Response:
        """Send a request in the highest common version, and return its response.

        Raises ConnectionLostError (also when no response arrives in time, by default within request.timeout.ms or
        the rest of the call's retry budget), UnservedApiError, and UnsendableError for a value that does not fit its
        field.
        """
        key = request.__message__.api_key
        assert key is not None
        if self._renewal is not None and self._renewal is not asyncio.current_task():
            await asyncio.wait([self._renewal])
        version = self._choose(key, max_version)
        raw = await self._exchange(key, version, request, timeout_ms or time_left_ms(self._settings.request_timeout_ms))
        try:
            start = skip_tagged(raw) if response_class(key).__message__.is_flexible(version) else 0
            return decode(response, raw, version, start)[0]
        except ProtocolError as error:
            raise ConnectionLostError(
                f"{self.server}: unreadable {response.__name__} version {version}: {error}"
            ) from error

    async def ready(self) -> None:
        """Wait until no re-authentication is in progress, so that the next request is sent at once."""
        if self._renewal is not None:
            await asyncio.wait([self._renewal])

    async def writable(self) -> None:
        """Wait until no re-authentication is in progress and at most 64 KiB of requests are buffered.

        A caller that then sends one request exceeds the 64 KiB by that request at most. Raises ConnectionLostError.
        """
        await self.ready()
        try:
            while self.usable and self._stream.unsent_bytes > _UNSENT_BYTES:
                await self._stream.drain()
        except OSError as error:
            raise ConnectionLostError(f"{self.server}: {error}") from None

    def version_of(self, request: Message) -> int:
        """Return the version in which `query` would send this request. Raises UnservedApiError."""
        key = request.__message__.api_key
        assert key is not None
        return self._choose(key, 32767)

    def serves(self, key: int, version: int) -> bool:
        """Whether the broker serves a version of an API."""
        low, high = self._served.get(key, (-1, -1))
        return low <= version <= high

    def _choose(self, key: int, max_version: int) -> int:
        ours = request_class(key).__message__.versions
        low, high = self._served.get(key, (-1, -1))
        version = min(ours.last, high, max_version)
        if version < max(ours.first, low):
            raise UnservedApiError(
                f"{self.server} serves API {key} in versions {low}-{high}; "
                f"this client speaks {ours.first}-{min(ours.last, max_version)}"
            )
        return version

    @property
    def served(self) -> Mapping[int, tuple[int, int]]:
        """Return the lowest and the highest version of each API that the broker serves, by API key."""
        return self._served

    async def learn_versions(self) -> None:
        """Request the API versions, in the newest version of the client.

        A broker that does not support that version responds with its range, in version 0 (KIP-511).
        """
        request = ApiVersionsRequest(client_software_name="pybroker", client_software_version=__version__)
        version = request_class(_API_VERSIONS).__message__.versions.last
        # A server that accepts connections without responding, such as a paused broker, is treated as unreachable.
        longest_ms = min(self._settings.request_timeout_ms, self._settings.socket_connection_setup_timeout_ms)
        timeout_ms = time_left_ms(longest_ms)
        raw = await self._exchange(_API_VERSIONS, version, request, timeout_ms)
        if raw[:2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big"):
            refusal, _ = decode(ApiVersionsResponse, raw, 0)
            served = next((api.max_version for api in refusal.api_keys if api.api_key == _API_VERSIONS), 0)
            version = max(0, min(version - 1, served))
            raw = await self._exchange(_API_VERSIONS, version, request, timeout_ms)
        response, _ = decode(ApiVersionsResponse, raw, version)
        self._served = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
        self.features = {
            feature.name: FeatureDescription(
                levels.get(feature.name, 0), feature.min_version, feature.max_version, response.finalized_features_epoch
            )
            for feature in response.supported_features
        }

    async def _exchange(self, key: int, version: int, request: Message, timeout_ms: int) -> bytes:
        """Send one request. Returns the response behind its correlation id."""
        correlation_id = next(self._correlation_ids)
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=self._settings.client_id,
        )
        try:
            frame = encode(header, 2 if flexible(key, version) else 1) + encode(request, version)
        except ProtocolError as error:
            raise UnsendableError(first_misfit(request) or str(error)) from None
        loop = asyncio.get_running_loop()
        responded: asyncio.Future[bytes] = loop.create_future()
        if not self.usable:
            raise ConnectionLostError(f"{self.server}: the connection is closed")
        # The broker may delay the response of a request with its own timeout, a JoinGroup, for that time.
        held_ms = timeout_ms if timeout_ms > self._settings.request_timeout_ms else 0
        silent_at = loop.time() + (held_ms + self._settings.retry_backoff_max_ms) / 1000
        self._waiting.append((correlation_id, responded, silent_at))
        self._stream.write(len(frame).to_bytes(4, "big") + frame)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await responded
        except TimeoutError:
            self._receiver.cancel()
            raise ConnectionLostError(f"{self.server}: no answer within {timeout_ms} ms") from None

    async def _receive(self) -> None:
        failure = f"{self.server}: the broker closed the connection"
        kind: type[ClientError] = ConnectionLostError
        try:
            while True:
                head = await self._stream.readexactly(4)
                size = int.from_bytes(head, "big", signed=True)
                if not 4 <= size <= (_LONGEST_FIRST_RESPONSE if self._is_new else _LONGEST_RESPONSE):
                    failure = f"{self.server}: {_not_kafka(head)}"
                    if _is_tls(head):
                        right = "SSL or SASL_SSL" if self._settings.credentials is None else "SASL_SSL"
                        failure = f"{self.server}: the listener speaks TLS: set security.protocol={right}"
                        kind = AuthenticationError if self._is_new else ConnectionLostError
                    return
                frame = await self._stream.readexactly(size)
                correlation_id, responded, _ = self._waiting.popleft()
                self._is_proven = not self._is_new
                if int.from_bytes(frame[:4], "big", signed=True) != correlation_id:
                    failure = f"{self.server}: a response to another request than {correlation_id}"
                    responded.set_exception(ConnectionLostError(failure))
                    return
                if not responded.done():
                    responded.set_result(frame[4:])
        except (asyncio.IncompleteReadError, IndexError):
            self._maybe_suspect()
        except OSError as error:
            failure = f"{self.server}: {error}"
            self._maybe_suspect()
        except AuthenticationError as error:
            # A TLS error after authentication is reported as a broken connection.
            failure, kind = f"{self.server}: {error}", AuthenticationError if self._is_new else ConnectionLostError
        finally:
            failure = self._given_up or failure
            while self._waiting:
                _, responded, _ = self._waiting.popleft()
                if not responded.done():
                    responded.set_exception(kind(failure))
            if self._renewal_due is not None:
                self._renewal_due.cancel()
            self._stream.close()

    def _maybe_suspect(self) -> None:
        has_requested = not self._is_new and not self._is_proven and bool(self._waiting)
        self.may_expect_sasl = has_requested and self._settings.credentials is None

    @property
    def usable(self) -> bool:
        """Whether requests can still be sent."""
        return not (self._receiver.done() or self._receiver.cancelling())

    def is_silent(self, now: float) -> bool:
        """Whether a response is overdue, by the loop's clock: the broker may be paused."""
        return bool(self._waiting) and self._waiting[0][2] <= now

    def give_up(self, why: str) -> None:
        """Close the connection without waiting. Requests in flight fail with this reason."""
        self._given_up = f"{self.server}: {why}"
        self._receiver.cancel()

    async def close(self) -> None:
        """Close the connection. Requests in flight fail."""
        self._receiver.cancel()
        await asyncio.gather(self._receiver, return_exceptions=True)
        try:
            await self._stream.wait_closed()
        except OSError:
            return


def _is_tls(head: bytes) -> bool:
    """Return whether these bytes begin a TLS record: an alert or a handshake, of version 3.x."""
    return head[0] in (21, 22) and head[1] == 3 and head[2] <= 4


def _not_kafka(head: bytes) -> str:
    """Describe the first four bytes of a response that no broker sends, for the error message."""
    if head == b"HTTP":
        return 'something other than Kafka answers there: its answer begins with "HTTP"'
    size = int.from_bytes(head, "big")
    return f"a response of {size} bytes: something other than Kafka answers there (it begins with {head.hex(' ')})"
