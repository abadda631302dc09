"""A program of Spark that copies a topic: the driver that a fault kills, and that is started anew.

    python -m tests.support.driver_program HOST:PORT SOURCE TARGET FOLDER EXACTLY-ONCE [FAULT]

FOLDER has the checkpoint, which outlives the program. A fault is one of `tests.support.faulty_sink`.
"""

from __future__ import annotations

import sys
import warnings

import pybroker_spark
from tests.support import faulty_sink

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": faulty_sink.BATCH_ROWS,
}


def main(arguments: list[str]) -> int:
    """Copy all there is; does not return where the fault kills this process."""
    servers, source, target, folder, exactly_once, *fault = arguments
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # PySpark's own import warns
        spark = pybroker_spark.session("driver", master="local[2,4]", settings=SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")
    pybroker_spark.register(spark)
    spark.dataSource.register(faulty_sink.FaultySource)
    reader = spark.readStream.format("pybroker").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
    writer = rows.select("key", "value", "partition").writeStream.format(faulty_sink.NAME if fault else "pybroker")
    if fault:
        writer = writer.option("fault", fault[0]).option("happened", f"{folder}/happened")
    writer = writer.option("kafka.bootstrap.servers", servers).option("topic", target)
    writer = writer.option("exactly.once", exactly_once).option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
