"""The client instances: the times of their requests, and their expiry.

Owns the rate limits of a client's requests, which are those of Kafka's `ClientMetricsInstance`, and the maximum
number of instances. An expired client is treated as new. Reads no clock.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pybroker.telemetry.client import Client
    from pybroker.telemetry.subscriptions import Requested

MOST = 16_384
"""Kafka's `CACHE_MAX_SIZE`: some hundred bytes each."""
LEAST_EXPIRY_MS = 60_000
"""Kafka's `DEFAULT_CACHE_EXPIRY_MS`."""
_INTERVALS_TO_EXPIRY = 3


class Instance(msgspec.Struct, eq=False):
    """One client instance. Times are milliseconds of a monotonic clock; None for never."""

    client: Client
    requested: Requested
    version: int
    """Version of the subscriptions from which `requested` was built."""
    got_at: int | None = None
    pushed_at: int | None = None
    is_terminating: bool = False
    """Whether the client has declared its last push as the last."""
    may_query_early: bool = False
    """Whether its last request failed with an error that a new request for subscriptions resolves."""
    expires_at: int = 0

    def note_get(self, now: int) -> bool:
        """Record a request for subscriptions. Returns false, without recording it, where it is too early."""
        last = max((at for at in (self.got_at, self.pushed_at) if at is not None), default=None)
        if last is not None and now - last < self.requested.interval_ms:
            return False
        self.got_at = now
        return True

    def note_push(self, now: int) -> bool:
        """Record a push. Returns false, without recording it, where it is too early.

        The first push after a request for subscriptions may arrive at any time: clients add a jitter, from half an
        interval to one and a half.
        """
        follows_get = self.got_at is not None and (self.pushed_at is None or self.got_at > self.pushed_at)
        if not follows_get and self.pushed_at is not None and now - self.pushed_at < self.requested.interval_ms:
            return False
        self.pushed_at = now
        return True


class Instances:
    """At most `most` instances, each until it has sent no request for three intervals."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        # In the order of their last requests.
        self._by_id: OrderedDict[bytes, Instance] = OrderedDict()
        # The last instance of each connection. Invariant: one entry for each connection with a request.
        self._by_connection: dict[int, bytes] = {}
        self._swept_at = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, instance_id: bytes) -> Instance | None:
        """Return an instance, or None."""
        return self._by_id.get(instance_id)

    def keep(self, instance: Instance, connection: int, now: int) -> None:
        """Keep an instance of a connection; the one with the oldest request may be removed."""
        instance_id = instance.client.instance_id
        instance.expires_at = now + max(LEAST_EXPIRY_MS, _INTERVALS_TO_EXPIRY * instance.requested.interval_ms)
        self._by_id[instance_id] = instance
        self._by_id.move_to_end(instance_id)
        self._by_connection[connection] = instance_id
        if len(self._by_id) > self._most:
            self._by_id.popitem(last=False)
        if now - self._swept_at >= LEAST_EXPIRY_MS:
            self._swept_at = now
            for one in [one for one, known in self._by_id.items() if known.expires_at <= now]:
                del self._by_id[one]

    def forget(self, connection: int) -> None:
        """Remove the instance of a closed connection."""
        instance_id = self._by_connection.pop(connection, None)
        if instance_id is not None:
            self._by_id.pop(instance_id, None)
