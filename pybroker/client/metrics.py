"""A client's numbers under Kafka's names: those of its group, and the whole list with groups and tags.

Owns which of Kafka's groups a name belongs to, and the sensors of what Python does: commits, heartbeats, rebalances.
Records, requests and connections are counted by the engine (`native/client/src/metrics.rs`). Nothing is done for each
record here.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pybroker.client import native
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.subscription_state import SubscriptionState
from pybroker.client.settings import ConsumerSettings

PRODUCER_GROUP = "producer-metrics"
CONSUMER_GROUP = "consumer-metrics"
FETCH_GROUP = "consumer-fetch-manager-metrics"
COORDINATOR_GROUP = "consumer-coordinator-metrics"

_OF_FETCHES = ("records-", "bytes-", "fetch-")
_OF_COORDINATOR = ("commit-", "heartbeat-", "join-", "sync-", "rebalance-", "last-", "assigned-")
_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One number with its full name, as Kafka's `MetricName` has it."""

    group: str
    name: str
    tags: Mapping[str, str]
    value: float


@dataclass(slots=True)
class Sensor:
    """Something that happens now and then, and how long it takes."""

    window_s: float
    samples: int
    clock: Callable[[], float]
    count: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0
    last_at: float | None = None
    _older: deque[tuple[float, int]] = field(default_factory=deque)
    """Earlier readings of `count`, oldest first, as the engine keeps them (`native/client/src/counters.rs`)."""

    def __post_init__(self) -> None:
        self._older.append((self.clock(), 0))

    def record(self, seconds: float) -> None:
        """It has happened, and took so long."""
        now = self.clock()
        if now - self._older[-1][0] >= self.window_s:
            self._older.append((now, self.count))
            while len(self._older) > self.samples:
                self._older.popleft()
        self.count += 1
        self.seconds += seconds
        self.longest_s = max(self.longest_s, seconds)
        self.last_at = now

    @property
    def rate(self) -> float:
        """How often a second, since the oldest reading that is kept."""
        began, count = self._older[0]
        elapsed = self.clock() - began
        return (self.count - count) / elapsed if elapsed > 0 else 0.0

    @property
    def mean_ms(self) -> float:
        """How long it takes in the mean."""
        return self.seconds * 1000 / self.count if self.count else 0.0

    @property
    def ago_s(self) -> float:
        """Seconds since it last happened; -1 where it has not, as Kafka says it."""
        return -1.0 if self.last_at is None else self.clock() - self.last_at


class GroupSensors:
    """What a consumer's membership of its group does."""

    def __init__(self, settings: ConsumerSettings, clock: Callable[[], float] = time.monotonic) -> None:
        window_s, samples = settings.metrics_sample_window_ms / 1000, settings.metrics_num_samples
        self.commit, self.heartbeat, self.join, self.sync, self.rebalance = (
            Sensor(window_s, samples, clock) for _ in range(5)
        )
        self._clock = clock
        # None exactly while no rebalance is under way.
        self._began: float | None = None

    def now(self) -> float:
        """Seconds of the sensors' clock."""
        return self._clock()

    def begin_rebalance(self) -> None:
        """A rebalance is under way, or still is."""
        if self._began is None:
            self._began = self._clock()

    def end_rebalance(self) -> None:
        """The program has the partitions that it brought."""
        if self._began is not None:
            self.rebalance.record(self._clock() - self._began)
            self._began = None

    def metrics(self) -> dict[str, float]:
        """By Kafka's names; times are milliseconds, rates per second, those of rebalances per hour."""
        commit, heartbeat, join, sync, rebalance = self.commit, self.heartbeat, self.join, self.sync, self.rebalance
        return {
            "commit-total": float(commit.count),
            "commit-rate": commit.rate,
            "commit-latency-avg": commit.mean_ms,
            "commit-latency-max": commit.longest_s * 1000,
            "heartbeat-total": float(heartbeat.count),
            "heartbeat-rate": heartbeat.rate,
            "heartbeat-response-time-max": heartbeat.longest_s * 1000,
            "last-heartbeat-seconds-ago": heartbeat.ago_s,
            "join-total": float(join.count),
            "join-rate": join.rate,
            "join-time-avg": join.mean_ms,
            "join-time-max": join.longest_s * 1000,
            "sync-total": float(sync.count),
            "sync-rate": sync.rate,
            "sync-time-avg": sync.mean_ms,
            "sync-time-max": sync.longest_s * 1000,
            "rebalance-total": float(rebalance.count),
            "rebalance-rate-per-hour": rebalance.rate * _HOUR_S,
            "rebalance-latency-avg": rebalance.mean_ms,
            "rebalance-latency-max": rebalance.longest_s * 1000,
            "rebalance-latency-total": rebalance.seconds * 1000,
            "last-rebalance-seconds-ago": rebalance.ago_s,
        }


class MeasuredConsumer:
    """What a consumer says of itself; `AsyncConsumer` has these calls."""

    settings: ConsumerSettings
    native: native.Fetcher
    _sensors: GroupSensors
    _state: SubscriptionState

    def metrics(self) -> dict[str, float]:
        """What the consumer has done, by the names of Kafka's consumer metrics.

        Totals (`records-consumed-total`), means and maxima (`fetch-latency-avg`, ms) since it was made; rates
        (`bytes-consumed-rate`, per second) over the last `metrics.num.samples` times `metrics.sample.window.ms`;
        and what is the case now (`records-lag-max`, `assigned-partitions`). With a group also what the membership does:
        `commit-latency-avg`, `rebalance-total`, `last-heartbeat-seconds-ago` and the like.
        """
        of_group = {} if self.settings.group_id is None else self._sensors.metrics()
        return {**self.native.metrics(), **of_group, "assigned-partitions": float(len(self._state.all()))}

    def partition_metrics(self) -> dict[TopicPartition, dict[str, float]]:
        """What is the case of each partition that is read: `records-lag`, the records between what was taken of it and
        the end that its last response named.
        """
        return build_lags(self.native.lags())

    def metric_values(self) -> list[MetricValue]:
        """What `metrics` and `partition_metrics` return, with the groups and tags of Kafka's names."""
        return consumer_values(self.metrics(), self.partition_metrics(), self.settings.client_id)


def build_lags(lags: Iterable[tuple[str, int, int]]) -> dict[TopicPartition, dict[str, float]]:
    """By partition, what `partition_metrics` returns, of the engine's rows."""
    return {TopicPartition(topic, index): {"records-lag": float(lag)} for topic, index, lag in lags}


def producer_values(metrics: Mapping[str, float], client_id: str) -> list[MetricValue]:
    """The full names of what a producer's `metrics` returns."""
    tags = {"client-id": client_id}
    return [MetricValue(PRODUCER_GROUP, name, tags, value) for name, value in metrics.items()]


def consumer_values(
    metrics: Mapping[str, float], of_partitions: Mapping[TopicPartition, Mapping[str, float]], client_id: str
) -> list[MetricValue]:
    """The full names of what a consumer's `metrics` and `partition_metrics` return."""
    tags = {"client-id": client_id}
    values = [MetricValue(_consumer_group(name), name, tags, value) for name, value in metrics.items()]
    for partition, own in of_partitions.items():
        where = {**tags, "topic": partition.topic, "partition": str(partition.partition)}
        values += [MetricValue(FETCH_GROUP, name, where, value) for name, value in own.items()]
    return values


def _consumer_group(name: str) -> str:
    if name.startswith(_OF_FETCHES):
        return FETCH_GROUP
    return COORDINATOR_GROUP if name.startswith(_OF_COORDINATOR) else CONSUMER_GROUP
