"""Callbacks for a program whose partitions change. Called inside `poll`, `unsubscribe` and `close`, never between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pybroker.client.administration.topics import TopicPartition

Invoke = Callable[..., Awaitable[None]]
"""Calls a function of the program's with arguments."""


async def invoke_directly(function: Callable[..., Any], *arguments: object) -> None:
    """Call, and await what comes back if it can be awaited."""
    outcome = function(*arguments)
    if isinstance(outcome, Awaitable):
        await outcome


class RebalanceListener:
    """Override what you need. Each may be a coroutine function with `AsyncConsumer`; each may commit, seek and ask."""

    def on_revoked(self, partitions: Sequence[TopicPartition], /) -> Awaitable[None] | None:
        """These go to another member when this returns; the last moment to commit what was read of them."""

    def on_assigned(self, partitions: Sequence[TopicPartition], /) -> Awaitable[None] | None:
        """These are new; called after every rebalance, also with none. A `seek` made here says where reading begins."""

    def on_lost(self, partitions: Sequence[TopicPartition], /) -> Awaitable[None] | None:
        """These may be another member's already: it is too late to commit. Does what `on_revoked` does."""
        return self.on_revoked(partitions)
