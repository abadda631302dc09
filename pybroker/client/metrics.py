"""A client's metrics under Kafka's names: those of its group, and the complete list with groups and tags.

Owns the assignment of names to Kafka's metric groups, and the sensors of events in Python: commits, heartbeats,
rebalances. The engine counts records, requests and connections (`native/client/src/metrics.rs`). No code of this
module runs for each record.
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
    """One value with its full name, as Kafka's `MetricName`."""

    group: str
    name: str
    tags: Mapping[str, str]
    value: float


@dataclass(slots=True)
class Sensor:
    """Counts an event and measures its duration."""

    window_s: float
    samples: int
    clock: Callable[[], float]
    count: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0
    last_at: float | None = None
    _older: deque[tuple[float, int]] = field(default_factory=deque)
    """Earlier values of `count`, oldest first, as the engine keeps them (`native/client/src/counters.rs`)."""

    def __post_init__(self) -> None:
        self._older.append((self.clock(), 0))

    def record(self, seconds: float) -> None:
        """Record one event and its duration."""
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
        """Return the events per second, since the oldest value that is kept."""
        began, count = self._older[0]
        elapsed = self.clock() - began
        return (self.count - count) / elapsed if elapsed > 0 else 0.0

    @property
    def mean_ms(self) -> float:
        """Return the mean duration in ms."""
        return self.seconds * 1000 / self.count if self.count else 0.0

    @property
    def ago_s(self) -> float:
        """Return the seconds since the last event; -1 before the first, as Kafka does."""
        return -1.0 if self.last_at is None else self.clock() - self.last_at


class GroupSensors:
    """The sensors of a consumer's group membership."""

    def __init__(self, settings: ConsumerSettings, clock: Callable[[], float] = time.monotonic) -> None:
        window_s, samples = settings.metrics_sample_window_ms / 1000, settings.metrics_num_samples
        self.commit, self.heartbeat, self.join, self.sync, self.rebalance = (
            Sensor(window_s, samples, clock) for _ in range(5)
        )
        self._clock = clock
        # None exactly while no rebalance is in progress.
        self._began: float | None = None

    def now(self) -> float:
        """Return the time of the sensors' clock in seconds."""
        return self._clock()

    def begin_rebalance(self) -> None:
        """Record the start of a rebalance, unless one is in progress."""
        if self._began is None:
            self._began = self._clock()

    def end_rebalance(self) -> None:
        """Record that the program has the partitions of the rebalance."""
        if self._began is not None:
            self.rebalance.record(self._clock() - self._began)
            self._began = None

    def metrics(self) -> dict[str, float]:
        """Return the metrics by Kafka's names; times in milliseconds, rates per second, of rebalances per hour."""
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
    """The metrics of a consumer; `AsyncConsumer` inherits these calls."""

    settings: ConsumerSettings
    native: native.Fetcher
    _sensors: GroupSensors
    _state: SubscriptionState

    def metrics(self) -> dict[str, float]:
        """Return the consumer's metrics by the names of Kafka's consumer metrics.

        Totals (`records-consumed-total`), means and maxima (`fetch-latency-avg`, ms) cover the lifetime of the
        consumer. Rates (`bytes-consumed-rate`, per second) cover the last `metrics.num.samples` times
        `metrics.sample.window.ms`. Gauges are current values (`records-lag-max`, `assigned-partitions`). With a
        group the result also contains the metrics of the membership: `commit-latency-avg`, `rebalance-total`,
        `last-heartbeat-seconds-ago` and others.
        """
        of_group = {} if self.settings.group_id is None else self._sensors.metrics()
        return {**self.native.metrics(), **of_group, "assigned-partitions": float(len(self._state.all()))}

    def partition_metrics(self) -> dict[TopicPartition, dict[str, float]]:
        """Return the metrics of each partition that is read.

        `records-lag` is the number of records between the last taken record and the log end of the last response.
        """
        return build_lags(self.native.lags())

    def metric_values(self) -> list[MetricValue]:
        """Return the values of `metrics` and `partition_metrics`, with the groups and tags of Kafka's names."""
        return consumer_values(self.metrics(), self.partition_metrics(), self.settings.client_id)


def build_lags(lags: Iterable[tuple[str, int, int]]) -> dict[TopicPartition, dict[str, float]]:
    """Convert the engine's rows to the result of `partition_metrics`."""
    return {TopicPartition(topic, index): {"records-lag": float(lag)} for topic, index, lag in lags}


def producer_values(metrics: Mapping[str, float], client_id: str) -> list[MetricValue]:
    """Return the values of a producer's `metrics` with their full names."""
    tags = {"client-id": client_id}
    return [MetricValue(PRODUCER_GROUP, name, tags, value) for name, value in metrics.items()]


def consumer_values(
    metrics: Mapping[str, float], of_partitions: Mapping[TopicPartition, Mapping[str, float]], client_id: str
) -> list[MetricValue]:
    """Return the values of a consumer's `metrics` and `partition_metrics` with their full names."""
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
