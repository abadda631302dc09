"""Sends of an asyncio producer that wait for their topic's metadata or for memory, in order.

Owns the order: while a record of a topic waits, later records of that topic queue behind it. A waiting record is in
no batch, so a cancelled send leaves nothing behind.
"""

from __future__ import annotations

import asyncio
from collections import deque

from pybroker.client import native

_WOKEN = 64
"""Sends of a topic that retry at one wake-up. Each success wakes the next one."""


class _Entry:
    __slots__ = ("late", "turn")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.turn: asyncio.Future[None] = loop.create_future()
        self.late = False

    def wake(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)

    def expire(self) -> None:
        self.late = True
        self.wake()


class WaitingSends:
    """The waiting sends of one producer, by topic."""

    def __init__(self, producer: native.Producer, max_block_s: float) -> None:
        self._producer, self._max_block_s = producer, max_block_s
        self.queues: dict[str, deque[_Entry]] = {}
        """Queues by topic; a topic is present while any of its sends waits."""

    async def wait(self, topic: str, outgoing: native.Outgoing, watcher: object) -> None:
        """Append the record once it is first in its queue and fits. Raises ClientError after `max.block.ms`."""
        loop = asyncio.get_running_loop()
        queue, entry = self.queues.setdefault(topic, deque()), _Entry(loop)
        queue.append(entry)
        timer = loop.call_later(self._max_block_s, entry.expire)
        try:
            while True:
                await entry.turn
                entry.turn = loop.create_future()
                if queue[0] is entry and self._producer._post_again(outgoing, watcher):
                    return
                if entry.late:
                    self._producer._raise_late(outgoing)
        finally:
            timer.cancel()
            queue.remove(entry)
            if queue:
                queue[0].wake()
            else:
                del self.queues[topic]

    def wake(self) -> None:
        """Retry waiting sends: memory may be free, metadata present, or the producer closed."""
        for queue in self.queues.values():
            for entry, _ in zip(queue, range(_WOKEN), strict=False):
                entry.wake()
