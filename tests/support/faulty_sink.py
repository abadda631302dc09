"""The data source with faults in its streaming write, each once: where the file that an option names is not there yet.

    option("fault", FAULT).option("happened", path)

FAULT is `kill worker`, `kill executor`, `delete target`, `fail`, `fail last` or `raise in commit`. A fault in a task
comes when rows of it are in the log. `fail` comes in every attempt. `fail last` comes in every attempt of the last
task, after the other tasks have finished: the driver never commits them, as if it had been killed. The module stands
alone, since Spark's processes import it by name.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pybroker.client import LATEST, Admin, TopicPartition
from pybroker_spark.sink.stream_writer import StreamWriter, WrittenShare, make
from pybroker_spark.source.datasource import PybrokerDataSource
from tests.support.conditions import wait_until

if TYPE_CHECKING:
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

NAME: Final = "pybroker-with-a-fault"
BATCH_ROWS: Final = "100"
"""What to set `spark.sql.execution.arrow.maxRecordsPerBatch` to, so that a task has some batches before its fault."""
_BEFORE: Final = 5
TASKS: Final = 4
"""Tasks of a batch, for `fail last`."""


class FaultyWriter(StreamWriter):
    """Does what its fault says, once."""

    fault: str
    happened: Path

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenShare:
        if self.fault == "fail last":
            return self._write_or_fail_last(iterator)
        return super().write(iterator if self.fault == "raise in commit" else self._faulty(iterator))

    def _write_or_fail_last(self, iterator: Iterator[pa.RecordBatch]) -> WrittenShare:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        task = context.partitionId()
        finished = [self.happened.with_suffix(f".{other}") for other in range(TASKS - 1)]
        if task < TASKS - 1:
            written = super().write(iterator)
            finished[task].touch()
            return written
        wait_until(lambda: all(path.exists() for path in finished), within=60, what="the other tasks to finish")
        return super().write(self._raise_late(iterator))

    @staticmethod
    def _raise_late(iterator: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(iterator):
            if number == _BEFORE:
                raise RuntimeError("the last task fails in every attempt")
            yield batch

    def commit(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        super().commit(messages, batch_id)
        if self.fault == "raise in commit" and not self.happened.exists():
            self.happened.touch()
            raise RuntimeError("the commit raises after it took effect")

    def _faulty(self, iterator: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(iterator):
            if number == _BEFORE and not self.happened.exists():
                self._happen()
            yield batch

    def _happen(self) -> None:
        with Admin(self.options.bootstrap_servers) as admin:
            topic = self.options.topic or ""
            (found,) = admin.describe_topics([topic])
            wanted = dict.fromkeys((TopicPartition(topic, p.index) for p in found.partitions), LATEST)
            wait_until(
                lambda: sum(end.offset for end in admin.list_offsets(wanted).values()) > 0,
                within=30,
                what=f"records in {topic}",
            )
            if self.fault == "fail":
                raise RuntimeError("this run fails in every attempt")
            self.happened.touch()
            if self.fault == "delete target":
                admin.delete_topics([topic])
            else:
                os.kill(os.getpid() if self.fault == "kill worker" else executor(), signal.SIGKILL)


class FaultySource(PybrokerDataSource):
    """The data source under another name."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyWriter:  # noqa: N802 (Spark's name)
        made = make({key: value for key, value in self.options.items() if key not in ("fault", "happened")}, schema)
        writer = FaultyWriter(made.options, made.columns)
        writer.fault, writer.happened = self.options["fault"], Path(self.options["happened"])
        return writer


def executor() -> int:
    """The JVM above this worker, whose parent is the daemon that forked it."""
    above = os.getppid()
    while Path(f"/proc/{above}/comm").read_text().strip() != "java":
        above = int(Path(f"/proc/{above}/stat").read_text().rpartition(")")[2].split()[1])
    return above
