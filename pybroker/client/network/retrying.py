"""Retries of calls within their retry budget: the only place where a client waits for a back-off.

Owns the clock and the random numbers that `pybroker.client.network.retry_budget` takes as arguments, and the current
budget: a call within a call uses the outer one's. Must not know APIs.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

from pybroker.client.errors import ClientError
from pybroker.client.network.retry_budget import JITTER, Backoff, RetryBudget, is_retriable
from pybroker.client.settings import ConnectionSettings

_log = logging.getLogger(__name__)
_in_force: ContextVar[RetryBudget | None] = ContextVar("retry budget", default=None)

Response = TypeVar("Response")


async def retry(
    settings: ConnectionSettings,
    attempt: Callable[[], Awaitable[Response]],
    *,
    timeout_ms: int | None = None,
    again: Callable[[ClientError], bool] = is_retriable,
    backoff: Backoff | None = None,
) -> Response:
    """Await `attempt` until it returns, for at most `timeout_ms` (default: default.api.timeout.ms).

    Failures for which `again` is true are retried after the back-off; others are raised at once. After the timeout,
    raises UnreachableError or BrokerError with the last failure and the time spent.
    """
    outer = _in_force.get()
    budget = outer or _budget(settings, timeout_ms, backoff)
    token = _in_force.set(budget)
    try:
        while True:
            try:
                return await attempt()
            except ClientError as failure:
                if budget.is_over or not again(failure):
                    raise
                pause = _step_failed(budget, failure)
            await asyncio.sleep(pause)
    finally:
        _in_force.reset(token)


def time_left_ms(longest_ms: int) -> int:
    """Return the timeout of one request: `longest_ms`, or the rest of the current budget where that is less."""
    budget = _in_force.get()
    if budget is None:
        return longest_ms
    return min(longest_ms, round(budget.left_s(asyncio.get_running_loop().time()) * 1000))


def draw_jitter() -> float:
    """Return a random share by which a back-off is changed."""
    return random.uniform(-JITTER, JITTER)


def _budget(settings: ConnectionSettings, timeout_ms: int | None, backoff: Backoff | None) -> RetryBudget:
    setting = "default.api.timeout.ms" if timeout_ms is None else "timeout_ms"
    allowed_ms = settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
    return RetryBudget(backoff or Backoff.of(settings), allowed_ms, setting, asyncio.get_running_loop().time())


def _step_failed(budget: RetryBudget, failure: ClientError) -> float:
    """Return the back-off before the next attempt. Raises the final error when no time is left for one."""
    now = asyncio.get_running_loop().time()
    pause = budget.step_failed(now, draw_jitter())
    if pause is None:
        raise budget.spent(failure, now) from failure
    if line := budget.maybe_warn(failure, now):
        _log.warning("%s", line)
    return pause
