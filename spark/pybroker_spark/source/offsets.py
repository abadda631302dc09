"""Offsets in options and checkpoints, and the bounds of a read before the cluster is queried.

Owns the JSON forms of Spark's Kafka connector: each can read a checkpoint of the other. Sends no request:
`pybroker_spark.source.planning` resolves the bounds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pybroker.client import TopicPartition
from pybroker_spark.source.errors import OptionError

Offsets: TypeAlias = dict[TopicPartition, int]
Checkpoint: TypeAlias = dict[str, dict[str, int]]
"""Offsets by topic and partition number, as in JSON."""

_BEGINNING = ""
"""Key in a checkpoint instead of a topic's name; no topic can have it."""

_OFFSETS_FORM = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}} (-2 earliest, -1 latest)'
_TIMES_FORM = '{"topicA":{"0":1700000000000,"1":1700000000000}} (milliseconds since 1970)'
_ASSIGNMENT_FORM = '{"topicA":[0,1],"topicB":[2,4]}'


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same for all partitions: `EARLIEST` or `LATEST`."""

    mark: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset, `EARLIEST` or `LATEST` for each partition; all partitions must be given."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class AtTimes:
    """The first offset at or after a timestamp, by partition; all partitions must be given."""

    times_ms: Offsets


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first offset at or after one timestamp in every partition."""

    time_ms: int


Bound: TypeAlias = Everywhere | AtOffsets | AtTimes | AtTime
"""The start or end of a read, as given by options."""


def in_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return partitions sorted by topic and number."""
    return sorted(partitions, key=lambda p: (p.topic, p.partition))


def named(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as text for messages: `orders-0, orders-1`."""
    return ", ".join(f"{p.topic}-{p.partition}" for p in in_order(partitions)) or "none"


def parse_assignment(option: str, text: str) -> frozenset[TopicPartition]:
    """Parse `{"topic":[0,1]}`. Raises OptionError."""
    value = _parse_json(option, text, _ASSIGNMENT_FORM)
    found = {
        TopicPartition(topic, _number(option, text, index, _ASSIGNMENT_FORM))
        for topic, indexes in value.items()
        for index in (indexes if isinstance(indexes, list) else [None])
    }
    if not found:
        raise _refused(option, text, _ASSIGNMENT_FORM)
    return frozenset(found)


def parse_offsets(option: str, text: str) -> Offsets:
    """Parse `{"topic":{"0":23,"1":-1}}`. Raises OptionError."""
    offsets = _parse_nested(option, text, _OFFSETS_FORM)
    if any(offset < -2 for offset in offsets.values()):
        raise _refused(option, text, _OFFSETS_FORM)
    return offsets


def parse_times(option: str, text: str) -> Offsets:
    """Parse `{"topic":{"0":1700000000000}}`. Raises OptionError."""
    return _parse_nested(option, text, _TIMES_FORM)


def read_checkpoint(value: Checkpoint) -> Offsets:
    """Return the offsets of a checkpoint, whose keys are texts."""
    return {
        TopicPartition(topic, int(index)): int(offset)
        for topic, partitions in value.items()
        for index, offset in partitions.items()
        if topic != _BEGINNING
    }


def with_beginning(end: Checkpoint, begin: Offsets) -> Checkpoint:
    """Return the end of a first micro-batch with its start, since `latest` changes before a restart."""
    return {**end, _BEGINNING: {f"{p.topic}-{p.partition}": begin[p] for p in in_order(begin)}}


def read_beginning(end: Checkpoint) -> Offsets | None:
    """Return the start of the micro-batch with this end, if the checkpoint contains it."""
    if _BEGINNING not in end:
        return None
    split = {name.rpartition("-"): offset for name, offset in end[_BEGINNING].items()}
    return {TopicPartition(topic, int(index)): offset for (topic, _, index), offset in split.items()}


def write_checkpoint(offsets: Offsets) -> Checkpoint:
    """Return offsets in a fixed order, since Spark compares checkpoints as texts."""
    value: Checkpoint = {}
    for partition in in_order(offsets):
        value.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return value


def _parse_nested(option: str, text: str, form: str) -> Offsets:
    value = _parse_json(option, text, form)
    found: Offsets = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, dict):
            raise _refused(option, text, form)
        for index, offset in partitions.items():
            number = _number(option, text, index, form)
            found[TopicPartition(topic, number)] = _number(option, text, offset, form)
    if not found:
        raise _refused(option, text, form)
    return found


def _parse_json(option: str, text: str, form: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        raise _refused(option, text, form) from None
    if not isinstance(value, dict):
        raise _refused(option, text, form)
    return value


def _number(option: str, text: str, value: object, form: str) -> int:
    try:
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return int(value)
    except ValueError:
        pass
    raise _refused(option, text, form)


def _refused(option: str, text: str, form: str) -> OptionError:
    return OptionError(f"{option}={text}: must be JSON like {form}")
