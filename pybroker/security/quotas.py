"""The client quotas of a client, and the throttle times of requests that Python handles.

Owns Kafka's precedence: the quota of the most specific entity applies, and is shared by all clients of that entity.
Must not know connections, or the use so far: the data plane counts (docs/adr/0061). The pipeline sets the throttle
time of responses, and Metadata's handler of its own, which are built from encoded parts. The data plane responds to
Produce, Fetch and most ApiVersions requests itself.

Source: KIP-13, KIP-55, KIP-124, KIP-219; Kafka's `ClientQuotaManager.DefaultQuotaCallback`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from pybroker.metadata.quotas import CLIENT_ID, USER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.metadata.quotas import ClientQuotasImage

PRODUCER_BYTE_RATE = "producer_byte_rate"
"""Bytes of Produce requests a second."""
CONSUMER_BYTE_RATE = "consumer_byte_rate"
"""Bytes of Fetch responses a second."""
REQUEST_PERCENTAGE = "request_percentage"
"""Percent of a thread's time."""
KEYS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE)

_DEFAULT_USER, _DEFAULT_CLIENT = (USER, None), (CLIENT_ID, None)


class Limit(NamedTuple):
    """A quota of a client, and the entity that shares it."""

    per_second: float
    user: str | None
    """The user whose connections share it; None: it applies to all users together."""
    client_id: str | None
    """The client id whose connections share it; None: it applies to all client ids together."""


class ClientLimits(NamedTuple):
    """The quotas of a client; None where it has none."""

    produce: Limit | None
    fetch: Limit | None
    request: Limit | None


class _Level(msgspec.Struct, frozen=True):
    """One of the entities whose quota could apply to a client."""

    limits: Mapping[str, float]
    by_user: bool
    by_client: bool


def limits_of(quotas: ClientQuotasImage, user: str, client_id: str) -> ClientLimits:
    """Return the quotas of a client; `client_id` is empty where the client sends none."""
    levels = _levels(quotas, user, client_id)
    produce, fetch, request = (_first(levels, key, user, client_id) for key in KEYS)
    return ClientLimits(produce, fetch, request)


def limit_of(quotas: ClientQuotasImage, key: str, user: str, client_id: str) -> Limit | None:
    """Return a client's quota of one key, None without one."""
    return _first(_levels(quotas, user, client_id), key, user, client_id)


def _levels(quotas: ClientQuotasImage, user: str, client_id: str) -> tuple[_Level, ...]:
    """Return the entities whose quota could apply to a client, the most specific first."""
    of, own_user, own_client = quotas.of, (USER, user), (CLIENT_ID, client_id)
    levels: tuple[_Level, ...] = (
        _Level(of(own_user, own_client), by_user=True, by_client=True),
        _Level(of(own_user, _DEFAULT_CLIENT), by_user=True, by_client=True),
        _Level(of(own_user), by_user=True, by_client=False),
        _Level(of(_DEFAULT_USER, own_client), by_user=True, by_client=True),
        _Level(of(_DEFAULT_USER, _DEFAULT_CLIENT), by_user=True, by_client=True),
        _Level(of(_DEFAULT_USER), by_user=True, by_client=False),
        _Level(of(own_client), by_user=False, by_client=True),
        _Level(of(_DEFAULT_CLIENT), by_user=False, by_client=True),
    )
    if not client_id:
        # Kafka's own classes find the quota of such a client by its user only.
        levels = tuple(level for level in levels if not level.by_client)
    return levels


def _first(levels: tuple[_Level, ...], key: str, user: str, client_id: str) -> Limit | None:
    for level in levels:
        value = level.limits.get(key)
        if value is not None:
            return Limit(value, user if level.by_user else None, client_id if level.by_client else None)
    return None


class RequestTime(msgspec.Struct, eq=False):
    """The time that the control plane spends on a request whose client may have a request quota."""

    count: Callable[[int], int]
    """Counts nanoseconds; returns the throttle time in ms."""
    clock: Callable[[], int] = time.perf_counter_ns
    began: int | None = None
    """Start of the work in progress; None while the request waits."""
    spent: int = 0
    throttle_time_ms: int | None = None
    """The throttle time, once the time was counted; None before."""

    def begin(self) -> None:
        """Start or resume counting."""
        if self.began is None:
            self.began = self.clock()

    def pause(self) -> None:
        """Pause counting while the request waits."""
        if self.began is not None:
            self.spent += self.clock() - self.began
            self.began = None

    def finish(self) -> int:
        """Count the time spent, once. Returns the throttle time in ms."""
        if self.throttle_time_ms is None:
            self.pause()
            self.throttle_time_ms = self.count(self.spent)
        return self.throttle_time_ms


class Client(Protocol):
    """A client that may be throttled."""

    @property
    def time(self) -> RequestTime | None:
        """Return the time of its request; None where it is not counted."""


def throttle_time_ms(client: Client) -> int:
    """Return a client's throttle time before its next request: `throttle_time_ms` of responses.

    Its connection is muted from then on, so the response must be sent next.
    """
    return 0 if client.time is None else client.time.finish()


def go_on(client: Client | None) -> None:
    """Resume counting the time of a request; None for a request with a response."""
    if client is not None and client.time is not None:
        client.time.begin()
