"""The data source with a fault in its streaming write. A fault occurs once: while the file `happened` does not exist.

    option("fault", FAULT).option("happened", path)

FAULT is `kill worker`, `kill executor`, `delete target`, `fail`, `fail last`, `raise in commit` or one of
`DRIVER_FAULTS`. A fault in a task occurs after rows of the task are in the log. `fail` occurs in every attempt.
`fail last` occurs in every attempt of the last task, after the other tasks have finished: the driver never commits
them. The module is self-contained, since Spark's processes import it by name.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pybroker.client import LATEST, Admin, TopicPartition
from pybroker_spark.sink import transactional
from pybroker_spark.sink.stream_writer import StreamWriter, WrittenShare, make
from pybroker_spark.source.datasource import PybrokerDataSource
from tests.support.conditions import wait_until

if TYPE_CHECKING:
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

NAME: Final = "pybroker-with-a-fault"
BATCH_ROWS: Final = "100"
"""`spark.sql.execution.arrow.maxRecordsPerBatch`, small enough that a task writes several batches before its fault."""
_BEFORE: Final = 5
TASKS: Final = 4
"""Number of tasks of a batch, for `fail last` and for the faults that kill the driver."""
DRIVER_FAULTS: Final = (
    "kill driver before",  # no task has finished
    "kill driver during",  # all tasks but one have finished; that one has written rows to the log
    "kill driver after",  # all tasks have finished, and nothing is committed
    "kill driver in commit",  # with transactions: the first one is committed
    "kill driver committed",  # the sink has committed, and Spark's checkpoint does not contain the batch yet
)
_IN_COMMIT: Final = ("raise in commit", "kill driver after", "kill driver in commit", "kill driver committed")


class FaultyWriter(StreamWriter):
    """A writer that triggers its fault once."""

    fault: str
    happened: Path

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenShare:
        if self.fault in ("fail last", "kill driver during"):
            return self._write_or_fail_last(iterator)
        return super().write(iterator if self.fault in _IN_COMMIT else self._faulty(iterator))

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

    def _raise_late(self, iterator: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(iterator):
            if number == _BEFORE:
                if self.fault == "kill driver during":
                    self._kill_driver()
                raise RuntimeError("the last task fails in every attempt")
            yield batch

    def commit(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        if self.fault == "kill driver after":
            self._kill_driver()
        if self.fault == "kill driver in commit":
            self._kill_after_first_end()
        super().commit(messages, batch_id)
        if self.fault == "kill driver committed":
            self._kill_driver()
        if self.fault == "raise in commit" and not self.happened.exists():
            self.happened.touch()
            raise RuntimeError("the commit raises after it took effect")

    def _kill_after_first_end(self) -> None:
        ends = transactional.end

        def end(*arguments: Any, **named: Any) -> None:
            ends(*arguments, **named)
            self._kill_driver()

        transactional.end = end

    def _kill_driver(self) -> None:
        """Kill the JVM above this process, the program that started the JVM, and then this process."""
        self.happened.touch()
        jvm = executor()
        for process in (parent(jvm), jvm, os.getpid()):
            os.kill(process, signal.SIGKILL)

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
                within=60,
                what=f"records in {topic}",
            )
            if self.fault == "fail":
                raise RuntimeError("this run fails in every attempt")
            if self.fault == "kill driver before":
                self._kill_driver()
            self.happened.touch()
            if self.fault == "delete target":
                admin.delete_topics([topic])
            else:
                os.kill(os.getpid() if self.fault == "kill worker" else executor(), signal.SIGKILL)


class FaultySource(PybrokerDataSource):
    """The data source with faults, under its own format name."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyWriter:  # noqa: N802 (Spark's name)
        made = make({key: value for key, value in self.options.items() if key not in ("fault", "happened")}, schema)
        writer = FaultyWriter(made.options, made.columns)
        writer.fault, writer.happened = self.options["fault"], Path(self.options["happened"])
        return writer


def executor() -> int:
    """Return the id of the JVM that started this worker's parent, the daemon that forked it."""
    above = os.getppid()
    while Path(f"/proc/{above}/comm").read_text().strip() != "java":
        above = parent(above)
    return above


def parent(process: int) -> int:
    """Return the id of a process's parent."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
