"""The topics that a consumer is subscribed to: which there are, and how many partitions they have.

Owns the wishes (names or a pattern) and the metadata that answers them, asked for again every metadata.max.age.ms, and
every moment while a topic is missing. Tells the consumer when something is different.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Collection, Iterable

from pybroker.client.cluster import Cluster, raise_refused
from pybroker.client.errors import BrokerError, ClientError
from pybroker.client.retry_budget import Backoff
from pybroker.client.retrying import draw_jitter
from pybroker.client.settings import ConsumerSettings
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.metadata import MetadataResponseTopic

_TRANSIENT = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_ID}


class TopicWatch:
    """What is wanted, and what of it there is."""

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, changed: Callable[[ClientError | None], None]
    ) -> None:
        self._cluster, self._settings, self._changed = cluster, settings, changed
        self._topics: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self.regex: str | None = None
        """A pattern that the broker matches (KIP-848)."""
        self.counts: dict[str, int] = {}
        """Partitions by topic, as far as known."""
        self.names: dict[bytes, str] = {}
        """Topics by id."""
        self._task: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()

    def want(
        self, topics: Collection[str] = (), pattern: re.Pattern[str] | None = None, regex: str | None = None
    ) -> None:
        """Watch these from now on; nothing, when all are empty."""
        self._topics, self._pattern, self.regex = frozenset(topics), pattern, regex
        self._asked.set()
        wanted = topics or pattern is not None
        if wanted and self._task is None:
            self._task = asyncio.ensure_future(self._watch())

    async def stop(self) -> None:
        """End."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def subscribed(self) -> frozenset[str]:
        """The topics that a member says it wants: those named, or those that match."""
        if self._pattern is None:
            return self._topics
        return frozenset(topic for topic in self.counts if self._pattern.search(topic) is not None)

    def follows_pattern(self) -> bool:
        """Whether the topics that are wanted depend on which there are."""
        return self._pattern is not None

    async def refresh(self) -> None:
        """Ask now. Raises BrokerError (no right to a topic, an impossible name) and what a connection may raise."""
        names = None if self._pattern is not None else sorted(self._topics)
        if names == []:
            return
        server, answer = await self._cluster.metadata(names, create=self._settings.allow_auto_create_topics)
        answered = {topic.name: topic for topic in answer.topics if topic.name}
        failures = ((f"topic {n!r}", t.error_code, None) for n, t in answered.items() if t.error_code not in _TRANSIENT)
        raise_refused(server, failures)
        before = (self.subscribed(), dict(self.counts))
        self.counts = self._count(answered.values())
        self.names = {t.topic_id: name for name, t in answered.items() if not t.error_code}
        if before != (self.subscribed(), self.counts):
            self._changed(None)

    async def count(self, topics: Iterable[str]) -> dict[str, int]:
        """Partitions of topics that a group is subscribed to; those that do not exist are missing."""
        _, answer = await self._cluster.metadata(sorted(topics), create=self._settings.allow_auto_create_topics)
        return {t.name: len(t.partitions) for t in answer.topics if t.name and not t.error_code}

    def _count(self, topics: Iterable[MetadataResponseTopic]) -> dict[str, int]:
        hides = self._pattern is not None and self._settings.exclude_internal_topics
        return {
            t.name: len(t.partitions) for t in topics if t.name and not t.error_code and not (hides and t.is_internal)
        }

    async def _watch(self) -> None:
        backoff, tries = Backoff.of(self._settings), 0
        while True:
            self._asked.clear()
            failed = False
            try:
                await self.refresh()
            except BrokerError as error:
                self._changed(error)
            except ClientError:
                failed = True
            missing = self._pattern is None and self._topics - self.counts.keys()
            tries = tries + 1 if missing or failed else 0
            wait_s = backoff.after(tries, draw_jitter()) if tries else self._settings.metadata_max_age_ms / 1000
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._asked.wait()
