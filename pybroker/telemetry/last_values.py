"""LastValues: the built-in receiver. It keeps the last value of each metric of each client.

Owns the values and their limits. `read` returns them; exporters define their own format. Sums with delta temporality
are accumulated here, from the client's first push to this broker on.

Pushes arrive on the receivers' thread; `read` may be called from any.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from pybroker.config.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.telemetry.client import Client, Push
    from pybroker.telemetry.otlp import Decode, Point

log = logging.getLogger("pybroker.telemetry")

MOST_CLIENTS = 1000
MOST_VALUES = 100_000
"""Limit for all clients together. With `_LONGEST` that is some 100 MB at worst, and a tenth of it with real clients."""
MOST_OF_CLIENT = 2000
_LONGEST = 512
"""Characters of a metric's name and labels together; longer ones are omitted."""
_LEAST_KEPT_MS = 60_000
_INTERVALS_KEPT = 3

_Key = tuple[str, tuple[tuple[str, str], ...]]


class Value(msgspec.Struct, frozen=True):
    """The last value of a metric."""

    name: str
    """The client's name: `org.apache.kafka.producer.record.send.total`."""
    labels: tuple[tuple[str, str], ...]
    value: float
    is_sum: bool
    """Whether it is a counter; otherwise it is a gauge."""


class ClientValues(msgspec.Struct, frozen=True):
    """The pushed metrics of a client."""

    client: Client
    pushes: int
    bytes: int
    """Bytes of its payloads, decompressed."""
    age_ms: int
    """Time since its last push."""
    is_last: bool
    """Whether the client has declared that push as its last."""
    left_out: int
    """Number of values that exceeded a limit."""
    values: tuple[Value, ...]


class _Known(msgspec.Struct, eq=False):
    client: Client
    pushed_at: int
    expires_at: int
    pushes: int = 0
    bytes: int = 0
    is_last: bool = False
    left_out: int = 0
    values: dict[_Key, Value] = {}


class LastValues:
    """Keeps the last values of at most `MOST_CLIENTS` clients, until they have not pushed for three intervals."""

    def __init__(self, now_ms: Callable[[], int], decode: Decode | None) -> None:
        """`now_ms` is a monotonic clock. Without `decode` pushes are only counted."""
        self._now_ms, self._decode = now_ms, decode
        self._lock = threading.Lock()
        # By client instance id, in the order of their last pushes.
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        # Invariant: the number of values of all `_known`.
        self._count = 0
        self._has_reported = False

    def receive(self, push: Push) -> None:
        """Store a push. Raises MalformedPayloadError before any of it is stored."""
        points = self._points(push.payload)
        now = self._now_ms()
        with self._lock:
            self._expire(now)
            known = self._known.get(push.client.instance_id)
            if known is None:
                known = self._known[push.client.instance_id] = _Known(push.client, now, now)
            self._known.move_to_end(push.client.instance_id)
            known.pushed_at = now
            known.expires_at = now + max(_LEAST_KEPT_MS, _INTERVALS_KEPT * push.interval_ms)
            known.pushes += 1
            known.bytes += len(push.payload)
            known.is_last = push.is_last
            for point in points:
                self._keep(known, point)
            while len(self._known) > 1 and (len(self._known) > MOST_CLIENTS or self._count > MOST_VALUES):
                self._drop(next(iter(self._known)))

    def read(self) -> tuple[ClientValues, ...]:
        """Return the values of each client, the latest push last."""
        now = self._now_ms()
        with self._lock:
            self._expire(now)
            return tuple(
                ClientValues(
                    one.client,
                    one.pushes,
                    one.bytes,
                    now - one.pushed_at,
                    one.is_last,
                    one.left_out,
                    tuple(one.values.values()),
                )
                for one in self._known.values()
            )

    def _points(self, payload: bytes) -> list[Point]:
        if self._decode is not None:
            return list(self._decode(payload))
        if not self._has_reported:
            self._has_reported = True
            log.warning(
                "Clients push metrics, but their values cannot be decoded: only pushes are counted. To decode them: %s",
                install_command("telemetry"),
            )
        return []

    def _keep(self, known: _Known, point: Point) -> None:
        key = (point.name, point.labels)
        before = known.values.get(key)
        if before is None:
            length = len(point.name) + sum(len(name) + len(text) for name, text in point.labels)
            if length > _LONGEST or len(known.values) >= MOST_OF_CLIENT:
                known.left_out += 1
                return
            self._count += 1
        value = point.value + before.value if point.is_delta and before is not None else point.value
        known.values[key] = Value(point.name, point.labels, value, point.is_sum)

    def _expire(self, now: int) -> None:
        for instance_id in [one for one, known in self._known.items() if known.expires_at <= now]:
            self._drop(instance_id)

    def _drop(self, instance_id: bytes) -> None:
        self._count -= len(self._known.pop(instance_id).values)
