"""A Spark program with its own executors: copies a topic, kills an executor meanwhile, and audits the copy.

    python -m tests.support.executor_killer HOST:PORT SOURCE TARGET FOLDER LOAD-REPORT EXACTLY-ONCE

Prints the audit of the committed records, which also sets the exit status. Runs in a process of its own, since its
Spark master differs from that of the tests.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pybroker_spark
from pybroker_spark.audit.expected import read_expected
from pybroker_spark.audit.job import audit
from tests.support import faulty_sink

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": faulty_sink.BATCH_ROWS,
}


def main(arguments: list[str]) -> int:
    """Copy, kill an executor, and audit. Returns the exit status."""
    servers, source, target, folder, report, exactly_once = arguments
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # PySpark's own import warns
        spark = pybroker_spark.session("executor killer", master="local-cluster[2,1,1024]", settings=SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")
    pybroker_spark.register(spark)
    spark.dataSource.register(faulty_sink.FaultySource)
    reader = spark.readStream.format("pybroker").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
    writer = rows.select("key", "value", "partition").writeStream.format(faulty_sink.NAME)
    writer = writer.option("fault", "kill executor").option("happened", f"{folder}/killed")
    writer = writer.option("kafka.bootstrap.servers", servers).option("topic", target)
    writer = writer.option("exactly.once", exactly_once)
    writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start().awaitTermination()
    copied = spark.read.format("pybroker").option("kafka.bootstrap.servers", servers).option("subscribe", target)
    found = audit(copied.option("kafka.isolation.level", "read_committed").load(), read_expected(Path(report)))
    print(found.as_table())
    spark.stop()
    return 0 if found.is_exactly_once else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
