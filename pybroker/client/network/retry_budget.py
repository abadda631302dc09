"""The time that one call may take, and when it is retried: Kafka's exponential back-off (KIP-580) within a deadline.

Owns the deadline, the back-off before each retry, which failures are retriable, and the message of the final error.
Time and jitter are arguments of every function. `pybroker.client.network.retrying` does the waiting.
"""

from __future__ import annotations

from msgspec import Struct

from pybroker.client.errors import BrokerError, ClientError, ConnectionLostError, UnreachableError
from pybroker.client.settings import ConnectionSettings

JITTER = 0.2
"""A back-off is increased or decreased by at most this share."""
_WARNS_AFTER_S = 1.0


class Backoff(Struct, frozen=True):
    """`initial_ms` after the first failure, doubled after each further one, at most `max_ms`."""

    initial_ms: float
    max_ms: float

    @classmethod
    def of(cls, settings: ConnectionSettings) -> Backoff:
        """Return the back-off of `retry.backoff.ms` and `retry.backoff.max.ms`."""
        return cls(settings.retry_backoff_ms, settings.retry_backoff_max_ms)

    def after(self, failures: int, jitter: float) -> float:
        """Return the back-off in seconds after so many consecutive failures; `jitter` is between -JITTER and JITTER."""
        most = self.max_ms / max(self.initial_ms, 1)
        factor = min(2.0 ** min(failures - 1, 32), most)
        return min(self.initial_ms * factor * (1 + jitter), self.max_ms) / 1000


class RetryBudget(Struct, eq=False):
    """The remaining time of one call. `began` and every `now` are seconds of the same clock."""

    backoff: Backoff
    timeout_ms: int
    setting: str
    """The setting or argument that defines the timeout; for the message."""
    began: float
    failures: int = 0
    is_over: bool = False
    """The call has failed for good: an outer call does not retry either."""
    _warned: bool = False

    def left_s(self, now: float) -> float:
        """Return the remaining seconds, at least 0."""
        return max(0.0, self.began + self.timeout_ms / 1000 - now)

    def step_failed(self, now: float, jitter: float) -> float | None:
        """Count a failed attempt.

        Returns the back-off before the next one in seconds, None where no time is left for it.
        """
        self.failures += 1
        pause = self.backoff.after(self.failures, jitter)
        self.is_over = pause >= self.left_s(now)
        return None if self.is_over else pause

    def maybe_warn(self, failure: ClientError, now: float) -> str | None:
        """Return a log message, once for each call that has no response after a second."""
        if self._warned or now - self.began < _WARNS_AFTER_S:
            return None
        self._warned = True
        return f"{failure}; trying again for {self.left_s(now):.0f} s ({self.setting}={self.timeout_ms})"

    def spent(self, failure: ClientError, now: float) -> ClientError:
        """Return the final error: the last failure, with the number of attempts and the time spent."""
        tries = f"{self.failures} tries" if self.failures > 1 else "1 try"
        took = f"{tries} in {round((now - self.began) * 1000)} ms ({self.setting}={self.timeout_ms})"
        if isinstance(failure, BrokerError):
            failure.args = (f"{failure}; {took}",)
            return failure
        reason = str(failure) if isinstance(failure, UnreachableError) else f"no broker answered: {failure}"
        return UnreachableError(f"{reason}; {took}")


def is_retriable(failure: ClientError) -> bool:
    """Return whether Kafka's clients retry after a failure: no response, or a retriable error code."""
    if isinstance(failure, BrokerError):
        return failure.code.retriable and not failure.final
    return isinstance(failure, (ConnectionLostError, UnreachableError))
