"""Benchmarks of the data source `pybroker`: batch reads and writes, compared with Spark's Kafka connector and with
batches from memory, and the minimum duration of a micro-batch.

`python -m pybench.spark_source --records 5000000` starts a broker and a session, measures the rows interleaved and
prints one JSON document: for each row the seconds of every counted round, and the rows per second of the median. Each
row is one function. Rows read are written to `noop`. Functions that need PySpark and `pybroker_spark` import them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.peers.java import fetch_connector_jars
from pybench.peers.pybroker import Pybroker
from pybroker.cli.perf.options import ToolError
from pybroker.client import Admin, LoadGenerator, NewTopic, Producer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUE_BYTES = 100
_BATCHES = 60
"""Micro-batches in one round of `micro_batch_floor`."""
_FEED_EVERY_S = 0.02
_FEW_RECORDS, _FEW_TOPIC = 1000, "bench-few"
_COPIED_TOPIC = "bench-copied"
_IN_MILLISECONDS = frozenset({"batch-read-few", "micro-batch-floor", "micro-batch-copy", "micro-batch-copy-connector"})
"""Rows whose figure is the time, not the throughput."""
_SETTINGS = {"spark.driver.memory": "4g", "spark.executor.memory": "1g", "spark.ui.showConsoleProgress": "false"}

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Bench:
    """The shared state of the rows: a session, a broker and a filled topic."""

    spark: SparkSession
    servers: str
    records: int
    partitions: int
    topic: str

    def fill(self, topic: str, records: int) -> None:
        """Write random values, evenly to the partitions."""
        with Producer(self.servers, {"batch.size": 262_144}) as producer:
            load = LoadGenerator(producer)
            for partition in range(self.partitions):
                share = records // self.partitions + (partition < records % self.partitions)
                load.send_random_letters(topic, partition, VALUE_BYTES, share)

    def fill_once(self, topic: str, records: int) -> None:
        """Create a topic and write random values to it, unless it exists."""
        with Admin(self.servers) as admin:
            if topic not in admin.list_topics():
                admin.create_topics([NewTopic(topic, self.partitions, 1)])
                admin.wait_for_leaders(topic)
                self.fill(topic, records)

    def fresh_topic(self) -> str:
        """Create an empty topic with the same number of partitions."""
        name = f"bench-{next(_numbers)}"
        with Admin(self.servers) as admin:
            admin.create_topics([NewTopic(name, self.partitions, 1)])
            admin.wait_for_leaders(name)
        return name


def read_batch(bench: Bench) -> float:
    """Return the seconds to read all columns of the topic."""
    return _read(bench, "pybroker")


def read_batch_values(bench: Bench) -> float:
    """Return the seconds to read only the values. No other column is built."""
    return _read(bench, "pybroker", columns="value")


def read_batch_from_memory(bench: Bench) -> float:
    """Return the lower limit: seconds to read as many rows of all columns from memory."""
    return _read_memory(bench, [column for column in _columns() if column != "headers"])


def read_batch_values_from_memory(bench: Bench) -> float:
    """Return the lower limit for values only."""
    return _read_memory(bench, ["value"])


def read_few(bench: Bench) -> float:
    """Return the seconds to read all columns of a thousand records: the fixed cost of a read."""
    bench.fill_once(_FEW_TOPIC, _FEW_RECORDS)
    return _read(replace(bench, topic=_FEW_TOPIC), "pybroker")


def read_batch_by_connector(bench: Bench) -> float:
    """Return the seconds to read all columns of the topic with Spark's own Kafka connector."""
    return _read(bench, "kafka")


def write_batch(bench: Bench) -> float:
    """Return the seconds to write rows of the JVM until the records are acknowledged."""
    return _write(bench, "pybroker")


def write_batch_by_connector(bench: Bench) -> float:
    """As `write_batch`, with Spark's own Kafka connector."""
    return _write(bench, "kafka")


def micro_batch_floor(bench: Bench) -> float:
    """Return the median seconds of a micro-batch of few records, from source to noop."""
    topic, over = bench.fresh_topic(), threading.Event()

    def feed() -> None:
        with Producer(bench.servers, {"linger.ms": 0}) as producer:
            while not over.wait(_FEED_EVERY_S):
                producer.send(topic, b"x" * VALUE_BYTES)

    feeder = threading.Thread(target=feed)
    with tempfile.TemporaryDirectory(prefix="pybench-checkpoint-") as checkpoint:
        reader = bench.spark.readStream.format("pybroker").option("kafka.bootstrap.servers", bench.servers)
        frame = reader.option("subscribe", topic).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        feeder.start()
        query = writer.trigger(processingTime="0 seconds").start()
        seen: dict[int, float] = {}
        try:
            while len(seen) < _BATCHES and query.exception() is None:
                time.sleep(0.2)
                for progress in query.recentProgress:
                    if progress["numInputRows"]:
                        seen[progress["batchId"]] = progress["durationMs"]["triggerExecution"] / 1000
        finally:
            over.set()
            feeder.join()
            query.stop()
    if not seen:
        raise ToolError(f"no micro-batch had rows: {query.exception()}")
    return statistics.median(list(seen.values())[len(seen) // 4 :])


def micro_batch_copy(bench: Bench) -> float:
    """Return the median seconds of a micro-batch of a thousand records, from topic to topic by source and sink."""
    return _copy(bench, "pybroker")


def micro_batch_copy_by_connector(bench: Bench) -> float:
    """As `micro_batch_copy`, with Spark's own Kafka connector, whose sink is at-least-once."""
    return _copy(bench, "kafka")


def _copy(bench: Bench, form: str) -> float:
    bench.fill_once(_COPIED_TOPIC, _BATCHES * _FEW_RECORDS)
    target = bench.fresh_topic()
    with tempfile.TemporaryDirectory(prefix="pybench-checkpoint-") as checkpoint:
        reader = bench.spark.readStream.format(form).option("kafka.bootstrap.servers", bench.servers)
        reader = reader.options(subscribe=_COPIED_TOPIC, startingOffsets="earliest", maxOffsetsPerTrigger=_FEW_RECORDS)
        writer = reader.load().select("key", "value").writeStream.format(form).option("topic", target)
        writer = writer.option("kafka.bootstrap.servers", bench.servers).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
    if len(batches) != _BATCHES:
        raise ToolError(f"{len(batches)} micro-batches had rows, and there were to be {_BATCHES} of {_FEW_RECORDS}")
    seconds = [progress["durationMs"]["triggerExecution"] / 1000 for progress in batches]
    return float(statistics.median(seconds[_BATCHES // 4 :]))


ROWS: dict[str, Callable[[Bench], float]] = {
    "batch-read": read_batch,
    "batch-read-value": read_batch_values,
    "batch-read-connector": read_batch_by_connector,
    "batch-read-memory": read_batch_from_memory,
    "batch-read-value-memory": read_batch_values_from_memory,
    "batch-read-few": read_few,
    "batch-write": write_batch,
    "batch-write-connector": write_batch_by_connector,
    "micro-batch-floor": micro_batch_floor,
    "micro-batch-copy": micro_batch_copy,
    "micro-batch-copy-connector": micro_batch_copy_by_connector,
}


def _read(bench: Bench, form: str, **options: str) -> float:
    begun = time.perf_counter()
    reader = bench.spark.read.format(form).option("kafka.bootstrap.servers", bench.servers)
    frame = reader.options(subscribe=bench.topic, **options).load()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


def _columns() -> dict[str, Any]:
    """Return the columns of a read with their types."""
    columns: dict[str, Any] = importlib.import_module("pybroker_spark.source.schema").READ
    return columns


def _read_memory(bench: Bench, names: list[str]) -> float:
    from pyspark.sql.types import StructField, StructType

    types, begun = _columns(), time.perf_counter()
    reader = bench.spark.read.format("pybench-memory").schema(StructType([StructField(n, types[n]) for n in names]))
    frame = reader.options(rows=bench.records, tasks=bench.partitions, size=VALUE_BYTES).load()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


def _write(bench: Bench, form: str) -> float:
    from pyspark.sql.functions import lit

    topic = bench.fresh_topic()
    frame = bench.spark.range(bench.records).select(lit(bytearray(b"x" * VALUE_BYTES)).alias("value"))
    begun = time.perf_counter()
    writer = frame.write.format(form).mode("append").option("kafka.bootstrap.servers", bench.servers)
    writer.option("topic", topic).save()
    seconds = time.perf_counter() - begun
    with Admin(bench.servers) as admin:
        admin.delete_topics([topic])
    return seconds


@contextlib.contextmanager
def running(master: str, records: int, partitions: int) -> Iterator[Bench]:
    """Yield a broker with a filled topic, and a session. Raises ToolError if Spark's part is not installed."""
    try:
        pybroker_spark = importlib.import_module("pybroker_spark")
    except ModuleNotFoundError:
        raise ToolError("pybroker_spark is not installed: pip install ./spark in a clone of pybroker") from None
    settings = {**_SETTINGS, "spark.jars": ",".join(str(jar) for jar in fetch_connector_jars())}
    with tempfile.TemporaryDirectory(prefix="pybench-spark-") as folder, Pybroker(Path(folder)) as broker:
        spark = pybroker_spark.session("spark-source", master=master, settings=settings)
        spark.sparkContext.setLogLevel("ERROR")
        pybroker_spark.register(spark)
        spark.dataSource.register(importlib.import_module("pybench.spark_memory").MemoryDataSource)
        try:
            bench = Bench(spark, broker.bootstrap_servers, records, partitions, "")
            topic = bench.fresh_topic()
            bench.fill(topic, records)
            yield replace(bench, topic=topic)
        finally:
            spark.stop()


def measure(bench: Bench, names: list[str], warm_up: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Measure each row `rounds` times, interleaved, after the uncounted rounds."""
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(warm_up + rounds):
        for name in names:
            taken = ROWS[name](bench)
            if number >= warm_up:
                seconds[name].append(taken)
    return {name: _figures(name, bench.records, taken) for name, taken in seconds.items()}


def _figures(name: str, records: int, seconds: list[float]) -> dict[str, Any]:
    median = statistics.median(seconds)
    if name in _IN_MILLISECONDS:
        return {"seconds": seconds, "median_ms": median * 1000}
    return {"seconds": seconds, "rows_per_s": records / median}


def main(arguments: list[str] | None = None) -> int:
    """Measure the requested rows and print them."""
    parser = argparse.ArgumentParser(prog="python -m pybench.spark_source", description="Figures of the data source.")
    parser.add_argument("--master", default="local[2]", metavar="URL", help="where Spark runs (default: local[2])")
    parser.add_argument("--records", type=int, default=5_000_000, metavar="N", help="records of 100 bytes (5000000)")
    parser.add_argument("--partitions", type=int, default=2, metavar="N", help="partitions of each topic (default: 2)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="counted rounds of each row (default: 5)")
    # The JIT compiler of the JVM uses a core during the first ten seconds of such jobs.
    parser.add_argument("--warm-up", type=int, default=3, metavar="N", help="uncounted rounds before them (default: 3)")
    parser.add_argument(
        "--only", action="append", choices=list(ROWS), metavar="ROW", help="this row only; may be repeated"
    )
    options = parser.parse_args(arguments)
    with running(options.master, options.records, options.partitions) as bench:
        figures = measure(bench, options.only or list(ROWS), options.warm_up, options.rounds)
    settings = {"master": options.master, "records": options.records, "partitions": options.partitions}
    print(json.dumps({**settings, "rows": figures}, indent=1), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
