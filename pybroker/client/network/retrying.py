"""Calls that are tried again within their retry budget: the one place where a client waits before another try.

Owns the clock and the dice that `pybroker.client.network.retry_budget` takes as arguments, and which budget is in
force: a call within a call spends the outer one's. Knows no API.
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

Answer = TypeVar("Answer")


async def retry(
    settings: ConnectionSettings,
    attempt: Callable[[], Awaitable[Answer]],
    *,
    timeout_ms: int | None = None,
    again: Callable[[ClientError], bool] = is_retriable,
    backoff: Backoff | None = None,
) -> Answer:
    """Await `attempt` until it returns, for at most `timeout_ms` (default: default.api.timeout.ms).

    Failures for which `again` is true are tried again after the back-off; others are raised at once. Raises
    UnreachableError or BrokerError when the time is over, with the last failure and how long it was tried.
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
    """Return how long one request may take: `longest_ms`, or what is left of the budget in force where that is less."""
    budget = _in_force.get()
    if budget is None:
        return longest_ms
    return min(longest_ms, round(budget.left_s(asyncio.get_running_loop().time()) * 1000))


def draw_jitter() -> float:
    """Return a random share by which a pause differs from its back-off."""
    return random.uniform(-JITTER, JITTER)


def _budget(settings: ConnectionSettings, timeout_ms: int | None, backoff: Backoff | None) -> RetryBudget:
    setting = "default.api.timeout.ms" if timeout_ms is None else "timeout_ms"
    allowed_ms = settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
    return RetryBudget(backoff or Backoff.of(settings), allowed_ms, setting, asyncio.get_running_loop().time())


def _step_failed(budget: RetryBudget, failure: ClientError) -> float:
    """Return the pause before the next try. Raises what ends the call when there is no time for one."""
    now = asyncio.get_running_loop().time()
    pause = budget.step_failed(now, draw_jitter())
    if pause is None:
        raise budget.spent(failure, now) from failure
    if line := budget.maybe_warn(failure, now):
        _log.warning("%s", line)
    return pause
