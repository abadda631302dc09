"""Which client quotas bind a client, and how long it is asked to wait by the requests that Python answers.

Owns Kafka's precedence: the most specific entity that has a quota binds, and the clients of that entity share it. Must
not know connections, nor what has been used: the data plane counts (docs/adr/0061). The pipeline puts the time to wait
into the answers, and so does Metadata's handler, whose answers are made of encoded parts; Produce, Fetch and most of
ApiVersions are answered in the data plane.

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
"""Bytes of answers to Fetch a second."""
REQUEST_PERCENTAGE = "request_percentage"
"""Percent of a thread's time."""
KEYS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE)

_DEFAULT_USER, _DEFAULT_CLIENT = (USER, None), (CLIENT_ID, None)


class Limit(NamedTuple):
    """A quota that binds a client, and who shares it."""

    per_second: float
    user: str | None
    """The user whose connections share it; None: the users of all connections do."""
    client_id: str | None
    """The client id whose connections share it; None: whatever they call themselves."""


class ClientLimits(NamedTuple):
    """The quotas that bind a client; None where there is none."""

    produce: Limit | None
    fetch: Limit | None
    request: Limit | None


class _Level(msgspec.Struct, frozen=True):
    """One of the entities that could bind a client."""

    limits: Mapping[str, float]
    by_user: bool
    by_client: bool


def limits_of(quotas: ClientQuotasImage, user: str, client_id: str) -> ClientLimits:
    """Return what binds a client; `client_id` is empty where the client says nothing."""
    levels = _levels(quotas, user, client_id)
    produce, fetch, request = (_first(levels, key, user, client_id) for key in KEYS)
    return ClientLimits(produce, fetch, request)


def limit_of(quotas: ClientQuotasImage, key: str, user: str, client_id: str) -> Limit | None:
    """Return the quota of one key that binds a client, None where nothing does."""
    return _first(_levels(quotas, user, client_id), key, user, client_id)


def _levels(quotas: ClientQuotasImage, user: str, client_id: str) -> tuple[_Level, ...]:
    """The entities that could bind a client, the most specific first."""
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
        # Kafka's own classes find a quota of such a client by its user alone.
        levels = tuple(level for level in levels if not level.by_client)
    return levels


def _first(levels: tuple[_Level, ...], key: str, user: str, client_id: str) -> Limit | None:
    for level in levels:
        value = level.limits.get(key)
        if value is not None:
            return Limit(value, user if level.by_user else None, client_id if level.by_client else None)
    return None


class RequestTime(msgspec.Struct, eq=False):
    """The time that the control plane spends on a request whose client may have a quota for it."""

    count: Callable[[int], int]
    """Counts nanoseconds; returns the milliseconds that the client is to wait."""
    clock: Callable[[], int] = time.perf_counter_ns
    began: int | None = None
    """When the work in progress began; None while the request waits."""
    spent: int = 0
    throttle_time_ms: int | None = None
    """What was counted comes to; None before."""

    def begin(self) -> None:
        """Work on the request begins, or goes on."""
        if self.began is None:
            self.began = self.clock()

    def pause(self) -> None:
        """The request waits for others."""
        if self.began is not None:
            self.spent += self.clock() - self.began
            self.began = None

    def finish(self) -> int:
        """Count what was spent, once; return the milliseconds that the client is to wait."""
        if self.throttle_time_ms is None:
            self.pause()
            self.throttle_time_ms = self.count(self.spent)
        return self.throttle_time_ms


class Client(Protocol):
    """Who is asked to wait."""

    @property
    def time(self) -> RequestTime | None:
        """The time that its request has taken; None where that does not count."""


def throttle_time_ms(client: Client) -> int:
    """Return the milliseconds that a client is to wait before its next request: the `throttle_time_ms` of answers.

    Its connection is muted from then on, so the answer is to follow.
    """
    return 0 if client.time is None else client.time.finish()


def go_on(client: Client | None) -> None:
    """Count the time of a request again; None is one that is answered."""
    if client is not None and client.time is not None:
        client.time.begin()
