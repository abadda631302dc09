"""Telemetry: the responses to GetTelemetrySubscriptions and PushTelemetry (KIP-714).

Owns the active subscriptions, the metrics requested from each client, and the rejection of requests, in the order
and with the error codes of Kafka's `ClientMetricsManager`. A publisher of the metadata image. Used from one event
loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, NamedTuple

from pybroker.metadata.image import CLIENT_METRICS_RESOURCE
from pybroker.protocol.errors import ErrorCode
from pybroker.telemetry.client import Push
from pybroker.telemetry.instances import Instance, Instances
from pybroker.telemetry.receivers import PayloadTooLargeError
from pybroker.telemetry.subscriptions import Requested, Subscription, build_requested

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage
    from pybroker.telemetry.client import Client
    from pybroker.telemetry.last_values import LastValues
    from pybroker.telemetry.receivers import Receivers

log = logging.getLogger("pybroker.telemetry")

ZERO, ONE = bytes(16), bytes(15) + b"\1"
"""Reserved ids: Kafka's `Uuid.RESERVED`."""
_HIGHEST_CODEC = 4
ACCEPTED_CODECS = (4, 3, 1, 2)
"""zstd, lz4, gzip and snappy, in Kafka's order of preference. A payload may also be uncompressed."""


class RefusedError(Exception):
    """A request of a client is rejected."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Given(NamedTuple):
    """The response to a request for subscriptions."""

    instance_id: bytes
    requested: Requested


class Counts(NamedTuple):
    """Counts by the names of Kafka's `client-metrics`."""

    instance_count: int
    """Current number of client instances."""
    unknown_subscription_request: int
    throttle: int
    plugin_export: int
    """Pushes that the receivers have accepted."""
    plugin_error: int


class Telemetry:
    """Validates clients' requests. Clients are requested to push nothing while no subscription matches."""

    def __init__(
        self,
        receivers: Receivers,
        last_values: LastValues | None,
        *,
        max_bytes: int,
        now_ms: Callable[[], int],
        new_id: Callable[[], bytes] = lambda: os.urandom(16),
    ) -> None:
        """`max_bytes` is `telemetry.max.bytes`; `now_ms` a monotonic clock; `new_id` returns 16 random bytes."""
        self._receivers = receivers
        self.last_values = last_values
        """The built-in receiver, whose `read` returns the pushed values. None without it."""
        self.max_bytes = max_bytes
        self._now_ms, self._new_id = now_ms, new_id
        self._instances = Instances()
        self._subscriptions: dict[str, Subscription] = {}
        # Incremented with every change of `_subscriptions`.
        self._version = 0
        self._is_following = False
        self._unknown = self._throttled = self._exported = self._failed = 0

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply changes of the subscriptions."""
        if not self._is_following:
            self._is_following = True
            changes = image.configs.of_client_metrics()
        else:
            changed = (one for one in delta.configs if one.type == CLIENT_METRICS_RESOURCE)
            changes = {resource.name: image.configs.of(*resource) for resource in changed}
        for name, texts in changes.items():
            self._version += 1
            self._subscriptions.pop(name, None)
            if not texts:
                continue
            try:
                self._subscriptions[name] = Subscription.parse(texts)
            except ValueError as error:  # written by a controller of another version
                log.warning("Ignoring the client-metrics resource %s: %s", name, error)

    def counts(self) -> Counts:
        """Return the counts so far."""
        return Counts(len(self._instances), self._unknown, self._throttled, self._exported, self._failed)

    def forget(self, connection: int) -> None:
        """Remove the client instance of a closed connection."""
        self._instances.forget(connection)

    def close(self) -> None:
        """Accept no more pushes."""
        self._receivers.close()

    def query(self, client: Client, connection: int) -> Given:
        """Return the subscriptions of a client, with a new id for one without (zeros). Raises RefusedError."""
        if client.instance_id == ZERO:
            client = client._replace(instance_id=self._fresh_id())
        now = self._now_ms()
        instance = self._find(client, connection, now)
        if not instance.note_get(now) and not instance.may_query_early:
            self._throttled += 1
            raise RefusedError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, _too_early(client))
        instance.may_query_early = False
        return Given(client.instance_id, instance.requested)

    async def push(
        self, client: Client, connection: int, subscription_id: int, payload: bytes, codec: int, *, is_last: bool
    ) -> None:
        """Process a client's push, and wait until the receivers have it. Raises RefusedError."""
        if client.instance_id in (ZERO, ONE):
            words = f"Invalid request from the client [{client.uuid}], invalid client instance id"
            raise RefusedError(ErrorCode.INVALID_REQUEST, words)
        now = self._now_ms()
        instance = self._find(client, connection, now)
        try:
            self._check(instance, subscription_id, payload, codec, is_last, now)
            if payload:
                await self._hand_out(Push(client, payload, instance.requested.interval_ms, is_last), codec)
        except RefusedError as refusal:
            instance.may_query_early = refusal.code in (
                ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            )
            log.debug("Rejecting a push of metrics: %s", refusal)
            raise
        finally:
            instance.is_terminating = is_last
        instance.may_query_early = False

    def _check(
        self, instance: Instance, subscription_id: int, payload: bytes, codec: int, is_last: bool, now: int
    ) -> None:
        client = instance.client
        if instance.is_terminating:
            words = f"Client [{client.uuid}] sent the previous request with state terminating to TRUE"
            raise RefusedError(ErrorCode.INVALID_REQUEST, f"{words}, can not accept any requests after that")
        if not instance.note_push(now) and not is_last:
            self._throttled += 1
            raise RefusedError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, _too_early(client))
        if subscription_id != instance.requested.subscription_id:
            self._unknown += 1
            words = f"Unknown client subscription id for the client [{client.uuid}]"
            raise RefusedError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, words)
        if not 0 <= codec <= _HIGHEST_CODEC:
            words = f"Unknown compression type [{codec}] is received in telemetry request from [{client.uuid}]"
            raise RefusedError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, words)
        if len(payload) > self.max_bytes:
            raise RefusedError(ErrorCode.TELEMETRY_TOO_LARGE, self._too_large(client))

    async def _hand_out(self, push: Push, codec: int) -> None:
        try:
            await asyncio.wrap_future(self._receivers.hand_out(push, codec, self.max_bytes))
        except PayloadTooLargeError as error:
            self._failed += 1
            raise RefusedError(ErrorCode.TELEMETRY_TOO_LARGE, self._too_large(push.client)) from error
        except Exception as error:
            self._failed += 1
            log.warning("Failed to process metrics of the client instance %s: %r", push.client.uuid, error)
            raise RefusedError(ErrorCode.INVALID_RECORD, str(error)) from error
        self._exported += 1

    def _find(self, client: Client, connection: int, now: int) -> Instance:
        """Return the instance, with the metrics of the active subscriptions; extend its expiry."""
        instance = self._instances.get(client.instance_id)
        if instance is None or instance.version < self._version:
            # Another subscription creates a new instance, as in Kafka: the client may request it at once.
            first = client if instance is None else instance.client
            instance = Instance(first, build_requested(first, self._subscriptions.values()), self._version)
        self._instances.keep(instance, connection, now)
        return instance

    def _fresh_id(self) -> bytes:
        while (instance_id := self._new_id()) in (ZERO, ONE) or self._instances.get(instance_id) is not None:
            pass
        return instance_id

    def _too_large(self, client: Client) -> str:
        return f"Telemetry request from [{client.uuid}] is larger than the maximum allowed size [{self.max_bytes}]"


def _too_early(client: Client) -> str:
    return f"Request from the client [{client.uuid}] arrived before the next push interval time"
