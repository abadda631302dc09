"""Micro-batches as a test says them: every list of rows is one, and what came of each is kept apart."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

FIRST_MTIME = 1_700_000_000


@dataclass
class MicroBatches:
    """A streaming query over rows of one schema; `run` may be called again, and goes on from its checkpoint."""

    spark: SparkSession
    directory: Path
    schema: str
    transform: Callable[[DataFrame], DataFrame]
    mode: str = "append"
    _files: int = field(default=0, init=False)

    def run(self, *batches: Sequence[dict[str, Any]]) -> list[list[Row]]:
        """Feed each list as a micro-batch of its own, and return the rows of each batch that Spark made of them.

        Spark may add a batch without rows in the end, for what a watermark has closed.
        """
        source = self.directory / "source"
        source.mkdir(exist_ok=True)
        for rows in batches:
            file = source / f"{self._files:05}.json"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            # The source takes the oldest file first.
            os.utime(file, (FIRST_MTIME + self._files, FIRST_MTIME + self._files))
            self._files += 1
        emitted: list[list[Row]] = []
        stream = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1).json(str(source))
        query = (
            self.transform(stream)
            .writeStream.outputMode(self.mode)
            .foreachBatch(lambda rows, _: emitted.append(rows.collect()))
            .option("checkpointLocation", str(self.directory / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return emitted

    def forget(self, batches: int) -> None:
        """As if the query had died when the first of its last `batches` was written and that was not noted yet."""
        checkpoint = self.directory / "checkpoint"
        numbers = sorted(int(file.name) for file in (checkpoint / "offsets").iterdir() if file.name.isdigit())
        for number in numbers[-batches:]:
            _remove(checkpoint / "commits" / str(number))
        for number in numbers[-batches:][1:]:
            _remove(checkpoint / "offsets" / str(number))


def _remove(file: Path) -> None:
    file.unlink()
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
