"""How long one call may take, and when it is tried again: Kafka's retry budget and its exponential back-off (KIP-580).

Owns the deadline, the pause before each try, which failures are worth another try, and the sentence that ends a call.
The time and the jitter are arguments of every function. `pybroker.client.network.retrying` waits and asks.
"""

from __future__ import annotations

from msgspec import Struct

from pybroker.client.errors import BrokerError, ClientError, ConnectionLostError, UnreachableError
from pybroker.client.settings import ConnectionSettings

JITTER = 0.2
"""A pause is longer or shorter than the back-off by at most this share of it."""
_WARNS_AFTER_S = 1.0


class Backoff(Struct, frozen=True):
    """`initial_ms` after the first failure, twice as much after each further one, never more than `max_ms`."""

    initial_ms: float
    max_ms: float

    @classmethod
    def of(cls, settings: ConnectionSettings) -> Backoff:
        """Return what `retry.backoff.ms` and `retry.backoff.max.ms` say."""
        return cls(settings.retry_backoff_ms, settings.retry_backoff_max_ms)

    def after(self, failures: int, jitter: float) -> float:
        """Return the pause in seconds after so many failures in a row; `jitter` lies between -JITTER and JITTER."""
        most = self.max_ms / max(self.initial_ms, 1)
        factor = min(2.0 ** min(failures - 1, 32), most)
        return min(self.initial_ms * factor * (1 + jitter), self.max_ms) / 1000


class RetryBudget(Struct, eq=False):
    """What one call may still spend. `began` and every `now` are seconds of the same clock."""

    backoff: Backoff
    timeout_ms: int
    setting: str
    """Which setting or argument gave the timeout; for the sentence."""
    began: float
    failures: int = 0
    is_over: bool = False
    """The call has failed for good: a call around this one tries nothing again."""
    _warned: bool = False

    def left_s(self, now: float) -> float:
        """Return the seconds that are left, at least 0."""
        return max(0.0, self.began + self.timeout_ms / 1000 - now)

    def step_failed(self, now: float, jitter: float) -> float | None:
        """Count a failed try; return the pause before the next one in seconds, None when there is no time for it."""
        self.failures += 1
        pause = self.backoff.after(self.failures, jitter)
        self.is_over = pause >= self.left_s(now)
        return None if self.is_over else pause

    def maybe_warn(self, failure: ClientError, now: float) -> str | None:
        """Return a line for the log, once for each call that is still without an answer after a second."""
        if self._warned or now - self.began < _WARNS_AFTER_S:
            return None
        self._warned = True
        return f"{failure}; trying again for {self.left_s(now):.0f} s ({self.setting}={self.timeout_ms})"

    def spent(self, failure: ClientError, now: float) -> ClientError:
        """Return the failure that ends the call: the last one, with how often and how long the call was tried."""
        tries = f"{self.failures} tries" if self.failures > 1 else "1 try"
        took = f"{tries} in {round((now - self.began) * 1000)} ms ({self.setting}={self.timeout_ms})"
        if isinstance(failure, BrokerError):
            failure.args = (f"{failure}; {took}",)
            return failure
        reason = str(failure) if isinstance(failure, UnreachableError) else f"no broker answered: {failure}"
        return UnreachableError(f"{reason}; {took}")


def is_retriable(failure: ClientError) -> bool:
    """Return whether Kafka's clients try again after a failure: no answer came, or one of a retriable code."""
    if isinstance(failure, BrokerError):
        return failure.code.retriable and not failure.final
    return isinstance(failure, (ConnectionLostError, UnreachableError))
