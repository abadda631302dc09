"""Tasks that process batches of columns, where the whole topology is made of column expressions.

Owns the decision for an application, and the processing of one batch. Rows that a program refuses become records.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pybroker.client.administration.topics import TopicPartition
from pybroker.streams.application.active_task import TaskState, ThreadTask
from pybroker.streams.application.settings import ApplicationSettings
from pybroker.streams.columns.program import (
    ColumnProgram,
    NotColumnarError,
    RefusedBatchError,
    compiled,
    uses_expressions,
)
from pybroker.streams.exception_handlers import log_and_fail
from pybroker.streams.runtime.record_queue import RawRecord
from pybroker.streams.topology.topology import Topology

if TYPE_CHECKING:
    import pyarrow

log = logging.getLogger("pybroker.streams")

Programs = Mapping[int, ColumnProgram]
"""The program of each subtopology; empty if the application processes records one by one."""


def column_programs(topology: Topology, settings: ApplicationSettings) -> Programs:
    """Return the programs of an application. They are empty where a node needs records one by one.

    Raises:
        TopologyError: an expression has a field that its source does not have, or operands of wrong types.
        StreamsError: a node has no serde.
    """
    if not uses_expressions(topology):
        return {}
    try:
        if settings.handlers.production is not log_and_fail or settings.handlers.dead_letter_topic is not None:
            raise NotColumnarError("production.exception.handler decides about single records")
        return compiled(topology, settings.config)
    except NotColumnarError as reason:
        log.info("Application %s processes records one by one: %s", settings.config.application_id, reason)
        return {}


def process_columns(
    task: ThreadTask, program: ColumnProgram, partition: TopicPartition, rows: pyarrow.RecordBatch
) -> bool:
    """Process a batch of a partition, and return whether this was possible. Otherwise nothing has been sent.

    Raises:
        TaskMigratedError: the transaction has ended.
        StreamsError: a row cannot be sent.
    """
    group = task.task.group
    queue = task.partitions[partition]
    # Records that wait in the queue are processed first, so that a partition keeps its order.
    if task.state is not TaskState.RUNNING or len(group.queues[queue]) or not rows.num_rows:
        return False
    try:
        outputs = program.run(partition.topic, rows)
    except RefusedBatchError as error:
        log.debug("Task %s processes %d records one by one: %s", task.task_id, rows.num_rows, error)
        return False
    for output in outputs:
        task.collector.send_columns(output)
    latest = max(_milliseconds(rows))
    group.set_partition_time(queue, max(latest, group.queues[queue].partition_time))
    task.needs_commit = True
    return True


def raw_records(partition: TopicPartition, rows: pyarrow.RecordBatch) -> Iterator[RawRecord]:
    """Return the rows of a batch as records."""
    columns = (rows[name].to_pylist() for name in ("offset", "key", "value", "headers"))
    for timestamp, offset, key, value, headers in zip(_milliseconds(rows), *columns, strict=True):
        pairs = tuple((header["key"], header["value"]) for header in headers or ())
        yield RawRecord(partition.topic, partition.partition, offset, timestamp, key, value, pairs)


def _milliseconds(rows: pyarrow.RecordBatch) -> list[int]:
    """Return the timestamps of a batch, in milliseconds since the epoch."""
    microseconds: Any = rows["timestamp"].cast("int64")
    return [each // 1000 for each in microseconds.to_pylist()]
