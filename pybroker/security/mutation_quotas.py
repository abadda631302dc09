"""The quota `controller_mutation_rate` (KIP-599): partitions that a client may create and delete per second.

Owns the token buckets of the quota entities. Pure: time is an argument, in seconds. Must not know topics or
requests. The active controller, which handles the requests, counts.

The capacity of a bucket is the span of all samples, which allows a burst. Requests of clients that know
THROTTLING_QUOTA_EXCEEDED are rejected while their bucket is negative (strict). Requests of other clients are
executed, and the response contains the throttle time (permissive).

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
"""Number of buckets above which full ones are removed; a full bucket equals a new one."""


_LONGEST_WAIT_MS = 2**31 - 1
"""The throttle time of a response is an int32. With a small quota the computed time may exceed it."""
_SHOWN_FOR_S = 3600.0
"""Kafka's `INACTIVE_SENSOR_EXPIRATION_TIME_SECONDS`: entities without requests for that long are not reported."""


class MutationUse(NamedTuple):
    """The use of an entity's quota."""

    user: str
    """Empty where the quota applies to all users."""
    client_id: str
    """Empty where the quota applies to all client ids."""
    tokens: float
    """Partitions that may be created or deleted now; negative after a burst above the capacity."""
    partitions: int
    """Partitions created and deleted since the entity was added."""
    throttled_ms: int
    """Total throttle time of its clients in ms."""


class _Bucket:
    __slots__ = ("most", "partitions", "rate", "throttled_ms", "tokens", "updated")

    def __init__(self, tokens: float, now: float) -> None:
        self.tokens = tokens
        self.updated = now
        self.rate = self.most = 0.0
        # Both only increase, for metrics.
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
        # Number of buckets at which full ones are removed; doubled where few are full.
        self._next_sweep = _FEW_BUCKETS

    def charge(
        self, quotas: ClientQuotasImage, user: str, client_id: str, now: float, *, is_strict: bool
    ) -> MutationCharge | None:
        """Return the charge of a request, None where no quota applies to its client."""
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
        """Return the use of the `most` entities with the highest use, and the number of others; from any thread."""
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
        """Remove nonnegative buckets that were not charged for the whole span: they are full at any rate."""
        self._buckets = {
            owner: bucket
            for owner, bucket in self._buckets.items()
            if bucket.tokens < 0 or now - bucket.updated < self._span_s
        }
        self._next_sweep = max(2 * len(self._buckets), _FEW_BUCKETS)


class MutationCharge:
    """The partitions that one request takes from a bucket. All decisions use one time."""

    __slots__ = ("_bucket", "_is_strict", "_most", "_partitions", "_rate", "wait_ms")

    def __init__(self, bucket: _Bucket, rate: float, most: float, *, is_strict: bool) -> None:
        self._bucket = bucket
        self._rate = rate
        self._most = most
        self._is_strict = is_strict
        self._partitions = 0
        self.wait_ms = 0
        """Throttle time in ms; 0 where the client is within its quota."""

    def take(self, partitions: int) -> bool:
        """Count partitions.

        Returns False, without counting, where a strict client's bucket is negative. 0 always succeeds.
        """
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
        """Uncount partitions that were neither created nor deleted."""
        self._bucket.tokens = min(self._most, self._bucket.tokens + partitions)
        self._partitions -= partitions

    def finish(self) -> int:
        """Record the charge in the metrics, once. Returns the throttle time in ms."""
        self._bucket.partitions += self._partitions
        self._bucket.throttled_ms += self.wait_ms
        return self.wait_ms

    def _throttle(self) -> None:
        # Half a millisecond is rounded up, as in Java.
        self.wait_ms = int(min(-self._bucket.tokens / self._rate * 1000 + 0.5, _LONGEST_WAIT_MS))


def with_throttle_time(response: Response, wait_ms: int) -> Response:
    """Set the throttle time of a response. The pipeline then mutes the connection (KIP-219)."""
    response.throttle_time_ms = wait_ms
    return response
