"""Callbacks for changes of a consumer's assignment. They are called inside `poll`, `unsubscribe` and `close` only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pybroker.client.administration.topics import TopicPartition

Invoke = Callable[..., Awaitable[None]]
"""Calls a function of the program with arguments."""


async def invoke_directly(function: Callable[..., Any], *arguments: object) -> None:
    """Call the function, and await its result if it is awaitable."""
    outcome = function(*arguments)
    if isinstance(outcome, Awaitable):
        await outcome


class RebalanceListener:
    """Override the methods that you need.

    With `AsyncConsumer` they may be coroutine functions. They may commit, seek and query.
    """

    def on_revoked(self, partitions: Sequence[TopicPartition], /) -> Awaitable[None] | None:
        """Called before partitions are revoked: the last chance to commit their offsets."""

    def on_assigned(self, partitions: Sequence[TopicPartition], /) -> Awaitable[None] | None:
        """Called with the new partitions after every rebalance, also with none.

        A `seek` here sets their first position.
        """

    def on_lost(self, partitions: Sequence[TopicPartition], /) -> Awaitable[None] | None:
        """Called for partitions that another member may own: too late to commit. Calls `on_revoked` by default."""
        return self.on_revoked(partitions)
