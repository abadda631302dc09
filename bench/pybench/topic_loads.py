"""Many topics: the time until a thousand new partitions have leaders, and the cost of Metadata for a thousand topics.

Each measurement starts its own broker, since the first creation after a start differs from the following ones.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pybench.peers.kafka import Kafka
from pybench.peers.pybroker import Pybroker
from pybench.topic_frames import Connection, all_topics, create_topics, has_leaders, is_served, topic_states

_WARM_CREATIONS = 5
_RESPONSES = 200
_PATIENCE_S = 120.0
_PAUSE_S = 0.005


def measure_creations(broker: str, partitions: int, work: Path) -> tuple[str, dict[str, float]]:
    """Create topics of `partitions` partitions one after the other. Measures the time until every partition has a
    leader in Metadata, and until its log is open.

    Nothing is deleted before the end: on ext4, file creation is slower for minutes after many deletions.
    """
    make = Kafka if broker == "kafka" else Pybroker
    folder = Path(tempfile.mkdtemp(prefix="topics-", dir=work))
    with make(folder) as node, Connection(node.bootstrap_servers) as connection:
        took = [_create(connection, f"t{number}", partitions) for number in range(1 + _WARM_CREATIONS)]
    later = took[1:]
    figures = {
        "records": float(partitions),
        "seconds": sum(one.served_s for one in took),
        "cold_ms": took[0].named_s * 1e3,
        "warm_ms": statistics.median(one.named_s for one in later) * 1e3,
        "answered_ms": statistics.median(one.responded_s for one in later) * 1e3,
        "served_ms": statistics.median(one.served_s for one in later) * 1e3,
    }
    return "CreateTopics, Metadata, ListOffsets", figures


@dataclass(frozen=True, slots=True)
class _Creation:
    """Seconds from the request to its response, to a leader for each partition, and until all partitions are served."""

    responded_s: float
    named_s: float
    served_s: float


def _create(connection: Connection, name: str, partitions: int) -> _Creation:
    begun = time.perf_counter()
    create_topics(connection, [name], partitions)
    responded = time.perf_counter()
    while not has_leaders(connection, name, partitions):
        _check_patience(begun, f"a partition of {name} has no leader")
    named = time.perf_counter()
    while not is_served(connection, name, partitions):
        _check_patience(begun, f"a partition of {name} is not served")
        time.sleep(_PAUSE_S)  # requests without a pause would slow down the opening of logs
    return _Creation(responded - begun, named - begun, time.perf_counter() - begun)


def _check_patience(begun: float, what: str) -> None:
    if time.perf_counter() > begun + _PATIENCE_S:
        raise SystemExit(f"{what} after {_PATIENCE_S:.0f} s")


def measure_metadata(broker: str, topics: int, work: Path) -> tuple[str, dict[str, float]]:
    """Create topics of one partition, and request Metadata of all of them repeatedly over one connection."""
    names = [f"topic-{number:04}" for number in range(topics)]
    make = Kafka if broker == "kafka" else Pybroker
    folder = Path(tempfile.mkdtemp(prefix="topics-", dir=work))
    with make(folder) as node, Connection(node.bootstrap_servers) as connection:
        create_topics(connection, names, 1)
        deadline = time.monotonic() + _PATIENCE_S
        while sum(state.has_all_leaders(1) for state in topic_states(connection, None)) < topics:
            if time.monotonic() > deadline:
                raise SystemExit(f"a topic has no leader after {_PATIENCE_S:.0f} s")
        took, size = [], 0
        for _ in range(_RESPONSES):
            begun = time.perf_counter()
            size = all_topics(connection)
            took.append(time.perf_counter() - begun)
    took.sort()
    figures = {
        "records": float(_RESPONSES),
        "bytes": float(size * _RESPONSES),
        "seconds": sum(took),
        "p50_ms": took[len(took) // 2] * 1e3,
        "p99_ms": took[len(took) * 99 // 100] * 1e3,
    }
    return "Metadata v12, all topics", figures
