"""One attempt of one task to write its rows of a batch: read the ledger, write, and after a failure skip written rows.

Without a failure rows are written once: no read-back, no fingerprints. After a failure, the attempt continues with
the producer id of the first attempt and the sequence numbers in the log, so that the broker rejects batches of an
older attempt that is still running. Rows that are in the log are not written again. Must not know Spark.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pybroker.client import ClientError, Continuation, Producer, TopicPartition
from pybroker_spark.disturbance import UNDISTURBED, Disturbance
from pybroker_spark.sink.entries import Begun, Entry, Place, TopicMark, Wrote, place_of
from pybroker_spark.sink.errors import InterferenceError, ReplayError, SinkError, TargetLostError
from pybroker_spark.sink.ledger import Ledger
from pybroker_spark.sink.read_back import begins_of, read_rows
from pybroker_spark.sink.routing import route, topics_of
from pybroker_spark.sink.rows import Bag, Sum, fingerprints
from pybroker_spark.sink.settings import flush_seconds

if TYPE_CHECKING:
    from pybroker_spark.source.options import WriteOptions

_FLUSH_SECONDS = 15.0
"""Added to delivery.timeout.ms, after which every record is acknowledged or failed."""


@dataclass(frozen=True, slots=True)
class Share:
    """The rows of a batch that one task writes."""

    query_id: str
    batch: int
    task: int

    def __str__(self) -> str:
        return f"query {self.query_id} batch {self.batch} task {self.task}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt."""

    begun: bool = False
    """Whether it has appended to the ledger; a task without rows does not."""
    done: bool = False
    """Whether the batch was done before, so nothing was written."""
    rows: int = 0
    repeated: int = 0
    """Rows that an earlier attempt had written."""
    topic_ids: Mapping[str, str] | None = None
    disturbance: Disturbance = UNDISTURBED


class _Earlier:
    """Rows of earlier attempts of the task in the log."""

    def __init__(self, begins: Mapping[TopicPartition, int]) -> None:
        self.begins = begins
        self.bag = Bag()
        """Rows in the log that are not among this attempt's rows so far."""
        self.rows = Sum()
        """This attempt's rows, including those that an earlier attempt wrote."""
        self.repeated = 0
        self.sequences: dict[TopicPartition, int] = {}

    def take_in(self, rows: pa.RecordBatch) -> None:
        """Add rows that are in the log. Their number is the next sequence number."""
        partition = TopicPartition(rows.column("topic")[0].as_py(), rows.column("partition")[0].as_py())
        self.sequences[partition] = (self.sequences.get(partition, 0) + rows.num_rows) & 0x7FFF_FFFF
        self.bag.add(fingerprints(rows))

    def subtract(self, batch: pa.RecordBatch, topic: str | None) -> pa.RecordBatch:
        """Return the rows of a batch that are not in the log."""
        marks = fingerprints(batch, topic)
        self.rows.add(marks)
        missing = [not self.bag.take(mark) for mark in marks]
        self.repeated += len(missing) - sum(missing)
        return batch.filter(pa.array(missing, pa.bool_()))


class Attempt:
    """One attempt; `write` is called once."""

    def __init__(self, share: Share, ledger: Ledger, options: WriteOptions) -> None:
        self._share, self._ledger, self._options = share, ledger, options
        self._identity = (-1, -1)
        self._marks: dict[str, TopicMark] = {}
        """The marks of the topics that this attempt writes to."""
        self._counts: dict[str, int] = {}
        """Partition counts by topic, from the task's first attempt."""
        self._known_ids: Mapping[str, str] = {}
        """Topic ids of the last batch."""
        self._earlier: _Earlier | None = None

    def write(self, batches: Iterable[pa.RecordBatch]) -> Outcome:
        """Write all rows; returns when every one is acknowledged. Raises SinkError."""
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return Outcome()
        try:
            place = self._begin(first)
            if place.done:
                for _ in filled:  # Spark reuses a worker only if its input was read
                    pass
                return Outcome(begun=True, done=True)
            return self._write(first, filled)
        except ClientError as error:
            raise SinkError(f"{self._share}: {error}{self._whereabouts()}") from error
        except SinkError as error:
            raise type(error)(f"{self._share}: {error}. {self._way_out()}") from error

    def _begin(self, first: pa.RecordBatch) -> Place:
        own = self._ledger.admin.new_producer_id()
        try:
            self._marks = {topic: self._ledger.mark(topic) for topic in topics_of(first, self._options.topic)}
        except ClientError:
            self._marks = self._place(None).marks()  # an earlier attempt has recorded the topics
            raise
        offset = self._ledger.append(Begun(self._share.batch, self._share.task, *own, self._marks))
        entries = self._ledger.read(offset)
        self._check_way(entries)
        place = place_of(entries, self._share.batch, self._share.task)
        self._identity = place.identity or own
        if place.done:
            return place
        self._known_ids = place.topic_ids
        self._check_known(self._marks)
        earlier = place.marks()
        self._counts = {topic: len(mark.ends) for topic, mark in {**self._marks, **earlier}.items()}
        if place.earlier:
            self._earlier = _Earlier(begins_of(self._ledger.admin, earlier))
            for rows in self._read_back():
                self._earlier.take_in(rows)
        return place

    def _check_way(self, entries: Iterable[Entry]) -> None:
        """Reject a batch whose rows were written by transactions."""
        if any(isinstance(entry, Wrote) and entry.batch == self._share.batch for entry in entries):
            raise SinkError(
                "the batch was begun with exactly.once=transactions: have it finished so, then change the option"
            )

    def _place(self, offset: int | None) -> Place:
        return place_of(self._ledger.read(offset), self._share.batch, self._share.task)

    def _write(self, first: pa.RecordBatch, others: Iterable[pa.RecordBatch]) -> Outcome:
        rows, earlier = 0, self._earlier
        sequences = earlier.sequences if earlier is not None else {}
        producer = Producer(
            self._options.bootstrap_servers,
            self._options.properties,
            continues=Continuation(*self._identity, sequences),
        )
        try:
            turn = self._share.batch + self._share.task
            for batch in _chain(first, others):
                rows += batch.num_rows
                self._meet(batch)
                routed = route(batch, self._options.topic, turn, self._counts.__getitem__)
                turn += 1
                missing = routed if earlier is None else earlier.subtract(routed, self._options.topic)
                if missing.num_rows:
                    producer.send_columns(missing, topic=self._options.topic)
                producer.raise_failure()
            producer.flush(flush_seconds(self._options.properties) + _FLUSH_SECONDS)
            producer.raise_failure()
            met = Disturbance.of_metrics(producer.metrics())
        finally:
            with contextlib.suppress(ClientError):
                producer.close(0.0)  # a failed attempt must not send its remaining records
        self._check_topics()
        if earlier is not None:
            self._check(earlier)
        topic_ids = {topic: mark.topic_id for topic, mark in self._marks.items()}
        repeated = earlier.repeated if earlier else 0
        return Outcome(begun=True, rows=rows, repeated=repeated, topic_ids=topic_ids, disturbance=met)

    def _meet(self, batch: pa.RecordBatch) -> None:
        """Append a topic to the ledger before its first row, with the end offset of each partition."""
        met = [topic for topic in topics_of(batch, self._options.topic) if topic not in self._marks]
        if met:
            marks = {topic: self._ledger.mark(topic) for topic in met}
            self._check_known(marks)
            self._ledger.append(Begun(self._share.batch, self._share.task, *self._identity, marks))
            self._marks |= marks
            self._counts = {**{topic: len(mark.ends) for topic, mark in marks.items()}, **self._counts}

    def _check_known(self, marks: Mapping[str, TopicMark]) -> None:
        """Raise TargetLostError for a topic that was recreated since the last batch."""
        for topic, mark in marks.items():
            if self._known_ids.get(topic, mark.topic_id) != mark.topic_id:
                raise TargetLostError(
                    f"topic {topic!r} was deleted and made anew since the batch before: what this query had written to"
                    f" it is gone; its partitions end at offsets {list(mark.ends)} now"
                )

    def _check_topics(self) -> None:
        """Raise TargetLostError for a topic that was recreated during the batch, which deletes rows."""
        for topic, found in zip(self._marks, self._ledger.admin.describe_topics(list(self._marks)), strict=True):
            if found.topic_id.hex() != self._marks[topic].topic_id:
                ends = list(self._marks[topic].ends)
                raise TargetLostError(
                    f"topic {topic!r} was deleted and made anew while the batch was written from offsets {ends} on"
                )

    def _check(self, earlier: _Earlier) -> None:
        """After a failure: check that the log contains exactly this attempt's rows, each once."""
        if earlier.bag.rows:
            raise ReplayError(
                f"{earlier.bag.rows} rows that an earlier attempt wrote, the first of them at"
                f" {self._first(earlier.bag)}, are not among the {earlier.rows.rows} of this one: a batch has to have"
                " the same rows whenever it is repeated, in the same tasks (no rand() or uuid(); as many cores as"
                " before for sources that split by them)"
            )
        found = Sum()
        for rows in self._read_back():
            found.add(fingerprints(rows))
        if found != earlier.rows:
            spans = ", ".join(f"{p.topic}-{p.partition} from offset {at}" for p, at in earlier.begins.items())
            raise InterferenceError(
                f"the log holds {found.rows} rows of it where this attempt has {earlier.rows.rows} ({spans}): an older"
                " attempt was still writing"
            )

    def _first(self, bag: Bag) -> str:
        for rows in self._read_back():
            for index, mark in enumerate(fingerprints(rows)):
                if mark in bag:
                    row = rows.slice(index, 1).to_pylist()[0]
                    return f"{row['topic']}-{row['partition']} offset {row['offset']}"
        return "an offset that is gone"

    def _read_back(self) -> Iterable[pa.RecordBatch]:
        assert self._earlier is not None
        servers = (self._options.bootstrap_servers, self._options.properties)
        return read_rows(self._ledger.admin, self._earlier.begins, self._identity[0], servers)

    def _whereabouts(self) -> str:
        spans = [
            f"{topic}-{index} from offset {end}"
            for topic, mark in self._marks.items()
            for index, end in enumerate(mark.ends)
        ]
        return f" (the attempt writes {', '.join(spans[:8])}{' ...' if len(spans) > 8 else ''})" if spans else ""

    def _way_out(self) -> str:
        return f"To have the batch written as if it had never been begun, delete topic {self._ledger.topic}"


def _chain(first: pa.RecordBatch, others: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield first
    yield from others
