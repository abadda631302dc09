"""How many partitions a client may have made and deleted in a second: `controller_mutation_rate` (KIP-599).

Owns the token buckets of whom quotas bind. Pure: time is an argument, in
seconds. Must not know topics, nor requests. The node that decides about topics counts, the active controller.

A bucket has room for the span of all samples: so many partitions may come at once. Clients that know the error
THROTTLING_QUOTA_EXCEEDED are refused while their bucket is in debt (strict); what others ask for is done, and the
answer says how long they are to wait (permissive).

Source: Kafka's ControllerMutationQuotaManager and TokenBucket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from pybroker.security.quotas import limit_of

if TYPE_CHECKING:
    from pybroker.metadata.quotas import ClientQuotasImage


class _Throttled(Protocol):
    throttle_time_ms: int


Response = TypeVar("Response", bound=_Throttled)

KEY = "controller_mutation_rate"
_FEW_BUCKETS = 10_000
"""Buckets that are remembered before those that are full, which are as if they were new, are forgotten."""


_LONGEST_WAIT_MS = 2**31 - 1
"""A response says the wait as an int32; a quota may be so small that no number of milliseconds is enough."""
_SHOWN_FOR_S = 3600.0
"""Kafka's `INACTIVE_SENSOR_EXPIRATION_TIME_SECONDS`: who has asked for nothing for so long is not shown."""


class MutationUse(NamedTuple):
    """What an entity has used of its quota."""

    user: str
    """Empty where users share the quota."""
    client_id: str
    """Empty where client ids share the quota."""
    tokens: float
    """Partitions that may be made or deleted now; negative where it was too many."""
    partitions: int
    """Partitions made and deleted since the entity is known."""
    throttled_ms: int
    """How long its clients were to wait."""


class _Bucket:
    __slots__ = ("most", "partitions", "rate", "throttled_ms", "tokens", "updated")

    def __init__(self, tokens: float, now: float) -> None:
        self.tokens = tokens
        self.updated = now
        self.rate = self.most = 0.0
        # Both only grow: what is shown.
        self.partitions = 0
        self.throttled_ms = 0

    def refill(self, now: float, rate: float, most: float) -> None:
        self.tokens = self.tokens_at(now, rate, most)
        self.updated, self.rate, self.most = now, rate, most

    def tokens_at(self, now: float, rate: float, most: float) -> float:
        return min(most, self.tokens + max(now - self.updated, 0.0) * rate)


class MutationQuotas:
    """The buckets of one node."""

    def __init__(self, samples: int, sample_s: int) -> None:
        """`samples` is controller.quota.window.num, `sample_s` controller.quota.window.size.seconds."""
        self._span_s = samples * sample_s
        self._buckets: dict[tuple[str | None, str | None], _Bucket] = {}
        # How many buckets there may be before full ones are looked for; it doubles where most are not.
        self._next_sweep = _FEW_BUCKETS

    def charge(
        self, quotas: ClientQuotasImage, user: str, client_id: str, now: float, *, is_strict: bool
    ) -> MutationCharge | None:
        """Return what a request is counted by, None where no quota binds its client."""
        limit = limit_of(quotas, KEY, user, client_id)
        if limit is None:
            return None
        owner, most = (limit.user, limit.client_id), limit.per_second * self._span_s
        bucket = self._buckets.get(owner)
        if bucket is None:
            if len(self._buckets) >= self._next_sweep:
                self._forget(now)
            bucket = self._buckets[owner] = _Bucket(most, now)
        bucket.refill(now, limit.per_second, most)
        return MutationCharge(bucket, limit.per_second, most, is_strict=is_strict)

    def uses(self, most: int, now: float) -> tuple[list[MutationUse], int]:
        """Return what entities have used, the `most` that used most, and how many others there are; from any thread."""
        buckets = [one for one in list(self._buckets.items()) if now - one[1].updated < _SHOWN_FOR_S]
        buckets.sort(key=lambda one: one[1].partitions, reverse=True)
        uses = [
            MutationUse(
                user or "",
                client_id or "",
                bucket.tokens_at(now, bucket.rate, bucket.most),
                bucket.partitions,
                bucket.throttled_ms,
            )
            for (user, client_id), bucket in buckets[:most]
        ]
        return uses, len(buckets) - len(uses)

    def _forget(self, now: float) -> None:
        """Forget buckets that nobody has taken from for the whole span: at whatever rate, they are full."""
        self._buckets = {
            owner: bucket
            for owner, bucket in self._buckets.items()
            if bucket.tokens < 0 or now - bucket.updated < self._span_s
        }
        self._next_sweep = max(2 * len(self._buckets), _FEW_BUCKETS)


class MutationCharge:
    """What one request takes of a bucket. It is decided about at one moment."""

    __slots__ = ("_bucket", "_is_strict", "_most", "_partitions", "_rate", "wait_ms")

    def __init__(self, bucket: _Bucket, rate: float, most: float, *, is_strict: bool) -> None:
        self._bucket = bucket
        self._rate = rate
        self._most = most
        self._is_strict = is_strict
        self._partitions = 0
        self.wait_ms = 0
        """How long the client is to wait; 0 where it asked for no more than it may."""

    def take(self, partitions: int) -> bool:
        """Count partitions; False, counting nothing, where a strict client is in debt. 0 is always taken."""
        bucket = self._bucket
        if self._is_strict and partitions and bucket.tokens < 0:
            self._throttle()
            return False
        bucket.tokens -= partitions
        self._partitions += partitions
        if not self._is_strict and bucket.tokens < 0:
            self._throttle()
        return True

    def give_back(self, partitions: int) -> None:
        """Count partitions no more: they were neither made nor deleted."""
        self._bucket.tokens = min(self._most, self._bucket.tokens + partitions)
        self._partitions -= partitions

    def finish(self) -> int:
        """Show what the request has come to, once; return how many milliseconds the client is to wait."""
        self._bucket.partitions += self._partitions
        self._bucket.throttled_ms += self.wait_ms
        return self.wait_ms

    def _throttle(self) -> None:
        # Half of a millisecond is one, as in Java.
        self.wait_ms = int(min(-self._bucket.tokens / self._rate * 1000 + 0.5, _LONGEST_WAIT_MS))


def say_wait(response: Response, wait_ms: int) -> Response:
    """Have a response say how long its client is to wait; the pipeline mutes its connection, as KIP-219 has it."""
    response.throttle_time_ms = wait_ms
    return response
