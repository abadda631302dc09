"""A program that starts a Spark Connect server and prints as JSON which features of pybroker run in its session.

    python -m tests.support.connect_program HOST:PORT SOURCE TARGET FOLDER

Runs in a process of its own, since a Connect session and a classic session cannot share a process.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

SETTINGS = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
JAVA = "--driver-memory 1g --driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"


def main(servers: str, source: str, target: str, folder: str) -> None:
    """Run each part, and print its result or its exception."""
    os.environ |= {**SETTINGS, "PYSPARK_SUBMIT_ARGS": f"--conf spark.ui.enabled=false {JAVA}"}
    from pyspark.sql import SparkSession

    import pybroker_spark
    from pybroker_spark.audit.job import audit
    from pybroker_spark.load import LoadPlan, ProducerPlan, run
    from pybroker_spark.spark_errors import sentence

    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    pybroker_spark.register(spark)
    where = {"kafka.bootstrap.servers": servers}

    def read(topic: str, **options: str) -> Any:
        return spark.read.format("pybroker").options(**where, subscribe=topic, **options).load()

    def stream() -> str:
        rows = spark.readStream.format("pybroker").options(**where, subscribe=source, startingOffsets="earliest").load()
        writer = rows.select("key", "value", "partition").writeStream.format("pybroker").options(**where, topic=target)
        query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        return "ended"

    def load() -> str:
        client = ProducerPlan(
            bootstrap_servers=servers, properties={}, topic=source, partitions=(0,), record_size=50, records=1
        )
        return str(run(spark, LoadPlan(run=7, clients=(client,), tasks=1)))

    parts: dict[str, Callable[[], object]] = {
        "rows": lambda: read(source).count(),
        "filtered": lambda: read(source).where("partition = 0").count(),
        "stream": stream,
        "audit": lambda: audit(read(target)).as_table().splitlines()[-1],
        "refused": lambda: read(source, startingOffset="3").count(),
        "load": load,
    }
    responses = {}
    for name, part in parts.items():
        try:
            responses[name] = part()
        except Exception as error:  # noqa: BLE001 (the exception is the result)
            responses[name] = f"{type(error).__name__}: {sentence(error)}"
    print(json.dumps(responses))
    spark.stop()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(*sys.argv[1:])
