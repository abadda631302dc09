"""The partition counts of the internal topics of a topology.

    repartition topic   its own count, else the largest count among the inputs of the subtopology that writes it
    copartition group   the count of its source topics, else of its fixed repartition topics, else the largest one
    changelog topic     the largest count among the inputs of its subtopology

Owns these equations, with Kafka's messages (`RepartitionTopics`, `CopartitionedTopicsEnforcer`, `ChangelogTopics`). The
counts of existing topics are arguments.
"""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING

from pybroker.coordinator.group.errors import StreamsInvalidTopologyError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pybroker.coordinator.group.streams.topology import Subtopology, Topology


class IncorrectPartitionsError(Exception):
    """Topics that must have the same number of partitions do not."""


def decide_counts(topology: Topology, existing: Callable[[str], int | None]) -> dict[str, int]:
    """Return the partition count of each internal topic. `existing` returns the count of a topic, None without one.

    Raises `IncorrectPartitionsError`, or `StreamsInvalidTopologyError` if no counts are possible. All source topics
    exist.
    """
    decided = _repartition_counts(topology, existing)

    def count_of(name: str) -> int:
        count = existing(name)
        return decided.get(name, 0) if count is None else count

    copartitioning = _Copartitioning(topology, count_of)
    for part in topology.subtopologies:
        for names in _copartitioned(part):
            decided.update(copartitioning.enforce(names))
    for part in topology.subtopologies:
        counts = [count_of(name) for name in part.inputs]
        if not counts:
            raise StreamsInvalidTopologyError(f"No source topics found for subtopology {part.id}")
        decided.update(dict.fromkeys((topic.name for topic in part.state_changelog_topics), max(counts)))
    return decided


def _repartition_counts(topology: Topology, existing: Callable[[str], int | None]) -> dict[str, int]:
    counts = {
        topic.name: topic.partitions
        for part in topology.subtopologies
        for topic in part.repartition_source_topics
        if topic.partitions != 0
    }
    writers = deque(part for part in topology.subtopologies if part.repartition_sink_topics)
    # A writer whose inputs have no count yet waits for the first of them. So each writer is visited twice at most.
    waiting: dict[str, list[Subtopology]] = {}
    done: set[str] = set()
    while writers:
        part = writers.popleft()
        if part.id in done:
            continue
        known = [counts.get(topic.name) for topic in part.repartition_source_topics]
        known += [existing(name) for name in part.source_topics]
        candidates = [count for count in known if count is not None]
        if not candidates:
            for topic in part.repartition_source_topics:
                waiting.setdefault(topic.name, []).append(part)
            continue
        done.add(part.id)
        for name in part.repartition_sink_topics:
            if name not in counts:
                counts[name] = max(candidates)
                writers.extend(waiting.pop(name, ()))
    if any(name not in counts for part in topology.subtopologies for name in part.repartition_sink_topics):
        raise StreamsInvalidTopologyError(
            "Failed to compute number of partitions for all repartition topics. There may be loops in the topology "
            "that cannot be resolved."
        )
    if any(topic.name not in counts for part in topology.subtopologies for topic in part.repartition_source_topics):
        raise StreamsInvalidTopologyError(
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic "
            "is never used as a sink topic."
        )
    return counts


def _copartitioned(part: Subtopology) -> Iterable[frozenset[str]]:
    for group in part.copartition_groups:
        yield frozenset(part.source_topics[index] for index in group.source_topics).union(
            part.repartition_source_topics[index].name for index in group.repartition_source_topics
        )


class _Copartitioning:
    """The rules for the topics of copartition groups."""

    def __init__(self, topology: Topology, count_of: Callable[[str], int]) -> None:
        repartition = [topic for part in topology.subtopologies for topic in part.repartition_source_topics]
        self._fixed = {topic.name for topic in repartition if topic.partitions != 0}
        self._all = {topic.name for topic in repartition}
        self._count_of = count_of

    def enforce(self, names: frozenset[str]) -> Mapping[str, int]:
        """Return the counts of the repartition topics in a copartition group."""
        if not names:
            return {}
        counts = {name: self._count_of(name) for name in sorted(names)}
        repartition = {name: count for name, count in counts.items() if name in self._all}
        others = {name: count for name, count in counts.items() if name not in repartition}
        if others:
            common = _same(others.values(), others)
        elif self._fixed:
            common = _same(self._fixed_counts, repartition)
        else:
            common = max(repartition.values())
            if common == 0:
                raise StreamsInvalidTopologyError(
                    f"All topics in the copartition group had undefined partition number: [{', '.join(repartition)}]"
                )
        for name, count in repartition.items():
            if name in self._fixed and count != common:
                raise IncorrectPartitionsError(
                    f"Number of partitions [{count}] of repartition topic [{name}] doesn't match number of partitions "
                    f"[{common}] of the source topic."
                )
        return dict.fromkeys(repartition, common)

    @cached_property
    def _fixed_counts(self) -> frozenset[int]:
        """The counts of all fixed topics of the topology: Kafka compares also those of other groups."""
        return frozenset(map(self._count_of, self._fixed))


def _same(counts: Collection[int], shown: Mapping[str, int]) -> int:
    distinct = set(counts)
    if len(distinct) > 1:
        words = ", ".join(f"{name}={count}" for name, count in sorted(shown.items()))
        raise IncorrectPartitionsError(f"Following topics do not have the same number of partitions: [{{{words}}}]")
    return distinct.pop()
