"""A Spark program that copies a topic: the driver that a fault kills and that the test restarts.

    python -m tests.support.driver_program [HOST:PORT SOURCE TARGET FOLDER EXACTLY-ONCE FAULT]

FOLDER contains the checkpoint, which outlives the program. FAULT is one of `tests.support.faulty_sink`. Without
arguments, the program reads the arguments except FAULT from each input line as JSON. It copies, and prints `copied` or
`failed`.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from typing import TYPE_CHECKING

import pybroker_spark
from tests.support import faulty_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": faulty_sink.BATCH_ROWS,
}


def main(arguments: list[str]) -> int:
    """Copy the topic, or the topics of each input line. Does not return if a fault kills this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # PySpark's own import warns
        spark = pybroker_spark.session("driver", master="local[2,4]", settings=SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")
    pybroker_spark.register(spark)
    spark.dataSource.register(faulty_sink.FaultySource)
    if arguments:
        copy(spark, *arguments)
    for line in () if arguments else sys.stdin:
        try:
            copy(spark, *json.loads(line))
        except Exception:  # noqa: BLE001 (the test prints it, and the next copy continues)
            traceback.print_exc()
            print("failed", flush=True)
        else:
            print("copied", flush=True)
    spark.stop()
    return 0


def copy(
    spark: SparkSession, servers: str, source: str, target: str, folder: str, exactly_once: str, fault: str = ""
) -> None:
    """Copy all available records."""
    reader = spark.readStream.format("pybroker").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
    writer = rows.select("key", "value", "partition").writeStream.format(faulty_sink.NAME if fault else "pybroker")
    if fault:
        writer = writer.option("fault", fault).option("happened", f"{folder}/happened")
    writer = writer.option("kafka.bootstrap.servers", servers).option("topic", target)
    writer = writer.option("exactly.once", exactly_once).option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
