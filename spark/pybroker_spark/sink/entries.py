"""The ledger's entries, and what they mean for an attempt: plain values and pure functions.

The ledger is a log in one partition, so that all attempts of all drivers agree on the order of what is in it. Knows
neither Spark nor a broker.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pybroker_spark.sink.errors import LedgerError


@dataclass(frozen=True, slots=True)
class TopicMark:
    """A target topic as an attempt found it before it wrote there."""

    topic_id: str
    ends: tuple[int, ...]
    """Where each partition ended: what the attempt writes lies at or above."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt is about to write rows of one task of a batch; or, with further topics, goes on to write to these."""

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
    """The topics that it was written to."""


@dataclass(frozen=True, slots=True)
class Wrote:
    """The rows of one task of a batch, in the transaction that this entry is part of (`exactly.once=transactions`)."""

    batch: int
    task: int


Entry: TypeAlias = Begun | Done | Wrote


@dataclass(frozen=True, slots=True)
class Place:
    """What the ledger says to an attempt of a task."""

    done: bool
    """The batch is done: there is nothing to write."""
    earlier: tuple[Begun, ...]
    """What attempts of the same task of the same batch have noted before this one."""
    topic_ids: Mapping[str, str]
    """The topics that the last batch was written to, as they were then."""

    @property
    def identity(self) -> tuple[int, int] | None:
        """Producer id and epoch under which all attempts of the task write: those of the first one."""
        return (self.earlier[0].producer_id, self.earlier[0].epoch) if self.earlier else None

    def marks(self) -> dict[str, TopicMark]:
        """The first mark of each topic that an earlier attempt may have written to."""
        marks: dict[str, TopicMark] = {}
        for entry in self.earlier:
            for topic, mark in entry.topics.items():
                marks.setdefault(topic, mark)
        return marks


def place_of(entries: Iterable[Entry], batch: int, task: int) -> Place:
    """What the entries that precede an attempt's own say to it. Batches are numbered upwards, and done in order."""
    last: Done | None = None
    earlier: list[Begun] = []
    for entry in entries:
        if isinstance(entry, Done):
            last = entry if last is None or entry.batch >= last.batch else last
        elif isinstance(entry, Begun) and (entry.batch, entry.task) == (batch, task):
            earlier.append(entry)
    return Place(last is not None and last.batch >= batch, tuple(earlier), last.topic_ids if last else {})


def begun_tasks(entries: Iterable[Entry], batch: int) -> set[int]:
    """The tasks of a batch of which an attempt has begun to write."""
    return {entry.task for entry in entries if isinstance(entry, Begun) and entry.batch == batch}


def write_entry(entry: Entry) -> bytes:
    """An entry as the ledger holds it."""
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
    """Read an entry. Raises LedgerError for what is none."""
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
        raise LedgerError(f"{data!r} is no entry of a sink's ledger that this version reads: {error!r}") from None
