"""The ledger's entries, and their meaning for an attempt: plain values and pure functions.

The ledger is a log with one partition, so that all attempts of all drivers agree on the order of its entries. Must
not know Spark or a broker.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pybroker_spark.sink.errors import LedgerError


@dataclass(frozen=True, slots=True)
class TopicMark:
    """A target topic at the start of an attempt's writes."""

    topic_id: str
    ends: tuple[int, ...]
    """The end offset of each partition: rows of the attempt have these or higher offsets."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt starts to write rows of one task of a batch, or starts to write to further topics."""

    batch: int
    task: int
    producer_id: int
    epoch: int
    topics: Mapping[str, TopicMark] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """Every row of a batch is in the log."""

    batch: int
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """The topics of the batch."""


@dataclass(frozen=True, slots=True)
class Wrote:
    """The rows of one task of a batch, in the transaction of this entry (`exactly.once=transactions`)."""

    batch: int
    task: int


Entry: TypeAlias = Begun | Done | Wrote


@dataclass(frozen=True, slots=True)
class Place:
    """The ledger's state for an attempt of a task."""

    done: bool
    """The batch is done: there is nothing to write."""
    earlier: tuple[Begun, ...]
    """The entries of earlier attempts of the same task of the same batch."""
    topic_ids: Mapping[str, str]
    """The topic ids of the last batch."""

    @property
    def identity(self) -> tuple[int, int] | None:
        """Return producer id and epoch of the first attempt, with which all attempts of the task write."""
        return (self.earlier[0].producer_id, self.earlier[0].epoch) if self.earlier else None

    def marks(self) -> dict[str, TopicMark]:
        """Return the first `TopicMark` of each topic to which an earlier attempt may have written."""
        marks: dict[str, TopicMark] = {}
        for entry in self.earlier:
            for topic, mark in entry.topics.items():
                marks.setdefault(topic, mark)
        return marks


def place_of(entries: Iterable[Entry], batch: int, task: int) -> Place:
    """Return the state from the entries before an attempt's own. Batch numbers increase; batches complete in order."""
    last: Done | None = None
    earlier: list[Begun] = []
    for entry in entries:
        if isinstance(entry, Done):
            last = entry if last is None or entry.batch >= last.batch else last
        elif isinstance(entry, Begun) and (entry.batch, entry.task) == (batch, task):
            earlier.append(entry)
    return Place(last is not None and last.batch >= batch, tuple(earlier), last.topic_ids if last else {})


def begun_tasks(entries: Iterable[Entry], batch: int) -> set[int]:
    """Return the tasks of a batch with an attempt that has started to write."""
    return {entry.task for entry in entries if isinstance(entry, Begun) and entry.batch == batch}


def write_entry(entry: Entry) -> bytes:
    """Encode an entry."""
    if isinstance(entry, Done):
        value: dict[str, object] = {"done": entry.batch, "topics": dict(entry.topic_ids)}
    elif isinstance(entry, Wrote):
        value = {"wrote": entry.batch, "task": entry.task}
    else:
        value = {
            "begun": entry.batch,
            "task": entry.task,
            "producer": [entry.producer_id, entry.epoch],
            "topics": {topic: [mark.topic_id, list(mark.ends)] for topic, mark in entry.topics.items()},
        }
    return json.dumps(value, separators=(",", ":")).encode()


def parse_entry(data: bytes | None) -> Entry:
    """Decode an entry. Raises LedgerError for an invalid one."""
    try:
        value = json.loads(data or b"")
        if "done" in value:
            return Done(int(value["done"]), {str(topic): str(named) for topic, named in value["topics"].items()})
        if "wrote" in value:
            return Wrote(int(value["wrote"]), int(value["task"]))
        marks = {
            str(topic): TopicMark(str(named), tuple(int(end) for end in ends))
            for topic, (named, ends) in value["topics"].items()
        }
        producer_id, epoch = value["producer"]
        return Begun(int(value["begun"]), int(value["task"]), int(producer_id), int(epoch), marks)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LedgerError(
            f"{data!r} is not an entry of a sink's ledger that this version can read: {error!r}"
        ) from None
