"""The topics that a consumer reads, and their partition counts.

Owns the subscription (names, a pattern or assigned partitions) and its metadata. Metadata is refreshed every
metadata.max.age.ms, while the fetcher receives no responses, and after each back-off while no broker responds or a
topic is missing. That is logged at WARN after a second, and raised by the consumer's next call after
default.api.timeout.ms. Notifies the consumer of changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Collection, Iterable

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import BrokerError, ClientError
from pybroker.client.network.cluster import Cluster, raise_refused
from pybroker.client.network.retry_budget import Backoff, RetryBudget
from pybroker.client.network.retrying import draw_jitter
from pybroker.client.settings import ConsumerSettings
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.metadata import MetadataResponseTopic

_log = logging.getLogger("pybroker.client")

_TRANSIENT = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_ID}


_SHOWN = 10
"""At most so many partitions are named in one log line."""
_SILENCE_S = 5.0
"""The longest time between two responses of a fetcher that reads: a response is due after fetch.max.wait.ms."""


class TopicWatch:
    """The subscription, and the metadata of its topics."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        changed: Callable[[ClientError | None], None],
        responses: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`responses` returns how many responses the fetcher has received; None while it reads no partition."""
        self._cluster, self._settings, self._changed, self._responses = cluster, settings, changed, responses
        self._topics: frozenset[str] = frozenset()
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._server = ""
        """The server of the last response."""
        self._pattern: re.Pattern[str] | None = None
        self.regex: str | None = None
        """A pattern that the broker matches (KIP-848)."""
        self.counts: dict[str, int] = {}
        """Partition counts by topic, as far as they are known."""
        self._leaderless: list[str] = []
        """Partitions without a leader, of subscribed topics."""
        self.names: dict[bytes, str] = {}
        """Topics by id."""
        self._task: asyncio.Task[None] | None = None
        self._warns_at = 0.0
        """Time of the loop's clock from which partitions without a leader may be logged again."""
        self._requested = asyncio.Event()

    def want(
        self,
        topics: Collection[str] = (),
        pattern: re.Pattern[str] | None = None,
        regex: str | None = None,
        assigned: Collection[TopicPartition] = (),
    ) -> None:
        """Replace the subscription, from the next `begin` on; all empty ends it."""
        self._topics, self._pattern, self.regex = frozenset(topics), pattern, regex
        self._assigned = frozenset(assigned)
        self._requested.set()

    def begin(self) -> None:
        """Start to refresh metadata, on the running event loop."""
        wanted = self._topics or self._assigned or self._pattern is not None or self.regex is not None
        if wanted and self._task is None:
            self._task = asyncio.ensure_future(self._watch())

    def check(self) -> None:
        """Refresh metadata now, because a broker cannot be reached."""
        self._requested.set()

    async def stop(self) -> None:
        """Stop refreshing metadata."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def subscribed(self) -> frozenset[str]:
        """Return the topics of the subscription: those given by name, or those that match the pattern."""
        if self._pattern is None:
            return self._topics
        return frozenset(topic for topic in self.counts if self._pattern.search(topic) is not None)

    def follows_pattern(self) -> bool:
        """Whether the subscribed topics depend on the topics of the cluster."""
        return self._pattern is not None

    async def refresh(self) -> None:
        """Request metadata now. Raises BrokerError (topic not authorized, invalid name) and connection errors."""
        if self._pattern is not None:
            names = None
        elif self._topics or self._assigned or self.regex is not None:
            names = sorted(self._topics | {partition.topic for partition in self._assigned})
        else:
            return
        server, response = await self._cluster.metadata(names, create=self._settings.allow_auto_create_topics)
        self._server = server
        responded = {topic.name: topic for topic in response.topics if topic.name}
        failures = (
            (f"topic {n!r}", t.error_code, None) for n, t in responded.items() if t.error_code not in _TRANSIENT
        )
        raise_refused(server, failures)
        before = (self.subscribed(), dict(self.counts))
        self.counts = self._count(responded.values())
        self._leaderless = [
            f"{name}-{p.partition_index}" for name, t in responded.items() for p in t.partitions if p.leader_id < 0
        ]
        self.names = {t.topic_id: name for name, t in responded.items() if not t.error_code}
        if before != (self.subscribed(), self.counts):
            self._changed(None)

    async def survey(self, topics: Iterable[str]) -> tuple[dict[str, int], dict[TopicPartition, frozenset[str]]]:
        """Return the partition counts of topics of the group's subscriptions, and the racks of their replicas.

        Topics that do not exist are omitted.
        """
        _, response = await self._cluster.metadata(sorted(topics), create=self._settings.allow_auto_create_topics)
        there = [topic for topic in response.topics if topic.name and not topic.error_code]
        racks = {broker.node_id: broker.rack for broker in response.brokers if broker.rack is not None}
        found = {
            TopicPartition(topic.name or "", partition.partition_index): frozenset(
                racks[node] for node in partition.replica_nodes if node in racks
            )
            for topic in there
            for partition in topic.partitions
        }
        return {topic.name or "": len(topic.partitions) for topic in there}, found

    def _count(self, topics: Iterable[MetadataResponseTopic]) -> dict[str, int]:
        hides = self._pattern is not None and self._settings.exclude_internal_topics
        return {
            t.name: len(t.partitions) for t in topics if t.name and not t.error_code and not (hides and t.is_internal)
        }

    def _missing(self) -> ClientError | None:
        """Return the error for subscribed topics or partitions that do not exist, None where all exist."""
        topics = [] if self._pattern is not None else sorted(self._topics - self.counts.keys())
        removed = [
            p
            for p in sorted(self._assigned, key=lambda p: (p.topic, p.partition))
            if p.partition >= self.counts.get(p.topic, 0)
        ]
        whats = [f"topic {topic!r}" for topic in topics] + [
            f"topic {p.topic!r} partition {p.partition}" for p in removed
        ]
        if not whats:
            return None
        return BrokerError.of(self._server, ", ".join(whats), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)

    async def _watch(self) -> None:
        budget: RetryBudget | None = None
        while True:
            self._requested.clear()
            began = asyncio.get_running_loop().time()
            trouble: ClientError | None = None
            try:
                await self.refresh()
                trouble = self._missing()
            except BrokerError as error:
                self._changed(error)
            except ClientError as error:
                trouble = error
            wait_s = self._settings.metadata_max_age_ms / 1000
            if trouble is None:
                budget = None
            else:
                budget = budget or self._budget(began)
                wait_s = self._report_trouble(budget, trouble)
                budget = None if budget.is_over else budget
            self._warn_of_leaderless()
            await self._wait(wait_s)

    async def _wait(self, longest_s: float) -> None:
        """Wait until the subscription changes, the time is over, or the fetcher receives no responses."""
        clock = asyncio.get_running_loop().time
        deadline, silence_s = clock() + longest_s, max(_SILENCE_S, 2 * self._settings.fetch_max_wait_ms / 1000)
        while not self._requested.is_set() and (left := deadline - clock()) > 0:
            received = self._responses()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, silence_s)):
                    await self._requested.wait()
            if left > silence_s and received is not None and received == self._responses():
                return

    def _warn_of_leaderless(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._leaderless and now >= self._warns_at:
            self._warns_at = now + self._settings.default_api_timeout_ms / 1000
            names = ", ".join(self._leaderless[:_SHOWN]) + (" and others" if len(self._leaderless) > _SHOWN else "")
            _log.warning("No leader of %s: no records are fetched from it until a leader is elected", names)

    def _budget(self, began: float) -> RetryBudget:
        longest_ms = self._settings.default_api_timeout_ms
        return RetryBudget(Backoff.of(self._settings), longest_ms, "default.api.timeout.ms", began)

    def _report_trouble(self, budget: RetryBudget, trouble: ClientError) -> float:
        """Log the error that prevents reading, or have the next call raise it.

        Returns the seconds until the next check.
        """
        now = asyncio.get_running_loop().time()
        pause_s = budget.step_failed(now, draw_jitter())
        if pause_s is None:
            self._changed(budget.spent(trouble, now))
            return self._settings.retry_backoff_max_ms / 1000
        if line := budget.maybe_warn(trouble, now):
            _log.warning("%s", line)
        return pause_s
