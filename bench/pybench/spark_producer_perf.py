"""kafka-producer-perf-test as one Spark job: records and rate are divided among the producers of its tasks.

It has Kafka's options, and prints Kafka's lines for all tasks together and for each. `--num-records`, `--throughput`
and `--warmup-records` are totals. `--transactional-id` is a prefix: each task appends its number. With `--throughput`,
latency counts from the scheduled time of a record.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from pybench import spark_options
from pybench.spark_follow import Follower, client_lines, producer_line
from pybench.spark_output import write_files
from pybroker.cli.perf import producer_perf
from pybroker.cli.perf.options import ToolError, check_settings, warn_of_unknown
from pybroker.cli.perf.progress import ProgressBar
from pybroker.client import Producer
from pybroker.client.settings import ConnectionSettings, ProducerSettings

if TYPE_CHECKING:
    from pybroker_spark.load import LoadPlan, Result


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add Kafka's and Spark's options."""
    producer_perf.add_options(parser)
    parser.add_argument(
        "--client",
        choices=("pybroker", "confluent-kafka"),
        default="pybroker",
        help="The client inside the tasks (default: pybroker).",
    )
    parser.add_argument(
        "--stamped",
        action="store_true",
        help="Begin each value with producer, sequence and send time (24 bytes), so that an audit can check the topic.",
    )
    spark_options.add_options(parser)


def main(options: argparse.Namespace) -> int:
    """Run the load. Returns 0, or 1 if records or a task were lost, or nothing could be sent."""
    properties = producer_perf.read_properties(options)
    check(options)
    spark_options.check(options)
    if options.client == "pybroker":
        check_settings(ProducerSettings, properties)
        warn_of_unknown(ProducerSettings, properties)
    servers = properties.pop("bootstrap.servers")
    load = spark_options.import_load()
    partitions = find_partitions(options, servers, properties)
    with spark_options.reported_errors(), spark_options.open_session(options) as spark:
        tasks = spark_options.choose_tasks(options, spark, options.num_records)
        plan = build_plan(options, servers, properties, partitions, tasks)
        with ProgressBar("records sent", options.num_records) as bar:
            follower = Follower("producer", bar, options.reporting_interval / 1000, options.waits)
            result = load.run(spark, plan, follower, **spark_options.ways(options))
    return report(result, options, properties)


def check(options: argparse.Namespace) -> None:
    """Check that the options are consistent. Raises ToolError."""
    if options.record_size is None:
        raise ToolError("spark-producer-perf makes its records in the tasks: use --record-size, not a payload")
    if options.stamped and options.record_size < (least := spark_options.import_load().STAMP_BYTES):
        raise ToolError(f"--stamped takes {least} bytes of each record: --record-size must be at least {least}")
    if options.stamped and options.client != "pybroker":
        raise ToolError("--stamped records are made by pybroker's client: leave out --client")
    if options.print_metrics:
        raise ToolError("--print-metrics: the tasks' metrics are not collected; use --json")


def find_partitions(options: argparse.Namespace, servers: str, properties: dict[str, str]) -> tuple[int, ...]:
    """Return the partitions of the topic, which is created if the broker auto-creates topics."""
    # Only the connection settings of a producer matter here.
    with Producer(servers, ConnectionSettings.acting(properties)) as producer:
        known = producer.partitions(options.topic)
    if options.partition >= known:
        raise ToolError(f"--partition {options.partition}: the topic {options.topic} has {known} partitions")
    return (options.partition,) if options.partition >= 0 else tuple(range(known))


def build_plan(
    options: argparse.Namespace, servers: str, properties: dict[str, str], partitions: tuple[int, ...], tasks: int
) -> LoadPlan:
    """Plan one producer for each task, whose round-robin starts at different partitions."""
    load = spark_options.import_load()
    records, warm_up = load.deal(options.num_records, tasks), load.deal(options.warmup_records, tasks)
    rate = options.throughput / tasks if options.throughput > 0 else load.UNLIMITED
    clients = tuple(
        load.ProducerPlan(
            bootstrap_servers=servers,
            properties=load.build_producer_properties(properties, task),
            topic=options.topic,
            partitions=tuple(partitions[(task + n) % len(partitions)] for n in range(len(partitions))),
            record_size=options.record_size,
            records=records[task],
            steps=(load.Step(rate=rate),),
            warm_up_records=warm_up[task],
            stamped=options.stamped,
            engine=options.client,
            transaction_s=(options.transaction_duration_ms or producer_perf.TRANSACTION_MS) / 1000,
        )
        for task in range(tasks)
    )
    interval_s = spark_options.interval_s(options)
    plan: LoadPlan = load.LoadPlan(run=spark_options.new_run(), clients=clients, tasks=tasks, interval_s=interval_s)
    return plan


def report(result: Result, options: argparse.Namespace, properties: dict[str, str]) -> int:
    """Print the summaries and write the files."""
    for line in client_lines(result, "producer"):
        print(line)
    total = result.total("producer")
    print(producer_line(total))
    if options.warmup_records:
        print(producer_line(result.steady("producer"), steady_state=True))
    wanted = {"topic": options.topic, "record_size": options.record_size, "throughput": options.throughput}
    write_files(result, options, {**wanted, "client": options.client, "properties": properties})
    if result.is_whole():
        return 0
    missing = options.num_records - total.records
    print(
        f"{missing} of {options.num_records} records were not acknowledged as far as is known, {total.failed} given up"
        f"{'; ended early: ' + result.reason if result.reason else ''}",
        file=sys.stderr,
    )
    return 1
