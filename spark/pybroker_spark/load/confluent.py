"""A load's producer on confluent-kafka, to compare the usual Python client with the native producer.

Uses the client's fastest calls: `produce_batch` with prebuilt values and no callback for each record. Only the last
record of each batch has a callback, which measures the latency. The plans and schedules are those of the
native producer.
"""

from __future__ import annotations

import random
import string
import threading
from collections.abc import Callable
from itertools import cycle
from typing import Any

from pybroker.client import LatencyHistogram
from pybroker_spark.load.clients import Clock, Orders, Sample
from pybroker_spark.load.errors import LoadError
from pybroker_spark.load.pacing import PacedProducer
from pybroker_spark.load.plan import ProducerPlan
from pybroker_spark.load.schedule import Portion

_DIFFERENT_VALUES = 1000
_FULL_WAIT_S = 0.005
_FLUSH_S = 0.1
_NAMES = {
    "max.request.size": "message.max.bytes",
}
"""Keys of Kafka's producer with another name in librdkafka."""
_QUEUE = {"queue.buffering.max.messages": "2000000", "queue.buffering.max.kbytes": "262144"}
"""Librdkafka limits its queue by messages; the default of 100,000 is ten milliseconds of small messages."""


class ConfluentProducer(PacedProducer):
    """One producer of a load, which follows its plan."""

    def __init__(self, plan: ProducerPlan, number: int) -> None:
        del number  # its records have no stamps
        super().__init__(plan)
        if plan.stamped or plan.keys:
            raise LoadError(
                "a load with the client confluent-kafka sends values without stamps and keys: leave out both"
            )
        from confluent_kafka import Producer

        settings = {_NAMES.get(key, key): value for key, value in plan.properties.items()}
        self._producer = Producer({**_QUEUE, **settings, "bootstrap.servers": plan.bootstrap_servers})
        self._round = cycle(plan.partitions or (-1,))
        letters = string.ascii_uppercase
        self._values = ["".join(random.choices(letters, k=plan.record_size)).encode() for _ in range(_DIFFERENT_VALUES)]
        self._lock = threading.Lock()
        self._phases = (Sample(histogram=LatencyHistogram()), Sample(histogram=LatencyHistogram()))
        self._acknowledged = self._failed = 0
        self._failure = ""

    def prepare(self) -> None:
        """Load the topic's partitions. Raises KafkaException."""
        self._producer.list_topics(self._plan.topic, timeout=60)
        if self._plan.is_transactional:
            self._producer.init_transactions(60)

    def _nap(self, seconds: float) -> None:
        """While nothing is due, run the callbacks of acknowledgements."""
        self._producer.poll(seconds)

    def _drain(self, orders: Orders) -> None:  # noqa: ARG002 (librdkafka times out every record in the end)
        while self._producer.flush(_FLUSH_S):
            pass

    def _begin_transaction(self) -> None:
        self._producer.begin_transaction()

    def _commit_transaction(self, timeout_s: float) -> None:
        self._producer.commit_transaction(timeout_s)

    def _maybe_abort_transaction(self, error: Exception, timeout_s: float) -> None:
        from confluent_kafka import KafkaException

        if isinstance(error, KafkaException) and error.args[0].txn_requires_abort():
            self._producer.abort_transaction(timeout_s)

    def _send(self, portion: Portion, clock: Clock) -> None:
        """Send one batch; records rejected by a full queue are sent again."""
        partition = next(self._round)
        due_s = clock.elapsed() if portion.first_s is None else portion.first_s
        first = self._sent
        messages: list[dict[str, Any]] = [
            {"value": self._values[number % _DIFFERENT_VALUES]} for number in range(first, first + portion.count)
        ]
        messages[-1]["callback"] = self._callback(portion.count, due_s, clock)
        while messages:
            self._producer.produce_batch(self._plan.topic, messages, partition)
            self._producer.poll(0)
            messages = [{key: m[key] for key in m if key != "_error"} for m in messages if "_error" in m]
            if messages:
                self._producer.poll(_FULL_WAIT_S)

    def _callback(self, count: int, due_s: float, clock: Clock) -> Callable[[Any, Any], None]:
        phase, size = 0 if self.steady_s is None else 1, count * self._plan.record_size

        def delivered(error: Any, _message: Any) -> None:
            latency_us = max(0, round((clock.elapsed() - due_s) * 1e6))
            with self._lock:
                sample = self._phases[phase]
                if error is not None:
                    sample.failed += count
                    self._failed += count
                    self._failure = self._failure or str(error)
                    return
                self._acknowledged += count
                sample.records += count
                sample.bytes += size
                sample.latency_sum_us += latency_us * count
                sample.latency_max_us = max(sample.latency_max_us, latency_us)
                assert sample.histogram is not None
                sample.histogram.record(latency_us, count)

        return delivered

    def sample(self, phase: int) -> Sample:
        """Return the counts of a phase since the last call."""
        fresh = Sample(histogram=LatencyHistogram())
        with self._lock:
            new = self._phases[phase]
            self._phases = (fresh, self._phases[1]) if phase == 0 else (self._phases[0], fresh)
        self.records += new.records
        return new

    def outcomes(self) -> list[tuple[str, int, int, int]]:
        """Return all counts under partition -1, since librdkafka does not count by partition."""
        return [(self._plan.topic, -1, self._acknowledged, self._failed)]

    def first_failure(self) -> str:
        """Return the error of the first failed batch."""
        return self._failure

    def disturbance(self) -> None:
        """Return None: librdkafka does not report disturbances."""

    def close(self) -> None:
        """Purge unsent records."""
        self._producer.purge()
