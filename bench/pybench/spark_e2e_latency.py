"""kafka-e2e-latency with many producers and many consumers at once, as one Spark job.

Producers stamp each record with its scheduled time, and consumers compute the latency from the stamp, so that delays of
producers count (no coordinated omission). It has Kafka's options and output lines. The clocks of the machines have to
be synchronised: a difference of more than 50 ms is printed.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from pybench import spark_options
from pybench.spark_follow import Follower, client_lines
from pybench.spark_output import write_files
from pybroker.cli.perf.e2e_latency import have_topic
from pybroker.cli.perf.options import ToolError, add_json_option, check_settings, read_config_file, warn_of_unknown
from pybroker.cli.perf.progress import ProgressBar
from pybroker.client import LATEST, Admin, TopicPartition
from pybroker.client.settings import AdminSettings, FetcherSettings, ProducerSettings

if TYPE_CHECKING:
    from pybroker_spark.load import LoadPlan, Result

_NAP_S = 0.0001
_IDLE_S = 30.0
_CLOCKS_APART_S = 0.05


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add Kafka's named options, the numbers of clients, and Spark's options."""
    add = parser.add_argument
    add("--bootstrap-server", required=True, metavar="SERVER", help="REQUIRED: The server(s) to connect to.")
    add("--topic", required=True, metavar="TOPIC", help="REQUIRED: The topic to use for the test.")
    add("--num-records", required=True, type=int, metavar="COUNT", help="REQUIRED: How many records in all.")
    add("--producer-acks", choices=("1", "all"), default="all", metavar="ACKS", help="1 or all (default: all).")
    add("--record-size", type=int, default=100, metavar="BYTES", help="The size of each value (default: 100).")
    add("--throughput", type=float, default=1000.0, metavar="RATE", help="Records a second in all (default: 1000).")
    add("--producers", type=int, default=1, metavar="N", help="Producers (default: 1).")
    add("--consumers", type=int, default=1, metavar="N", help="Consumers (default: 1).")
    add("--warm-up", type=float, default=0.0, metavar="SECONDS", help="Not counted at the beginning (default: 0).")
    add("--command-config", metavar="FILE", help="Config properties file.")
    add("--reporting-interval", type=int, default=1000, metavar="MS", help="Length of the intervals (default: 1000).")
    add_json_option(parser)
    spark_options.add_options(parser)


def main(options: argparse.Namespace) -> int:
    """Run the load. Returns 0 if every acknowledged record was consumed, 1 if not."""
    check(options)
    spark_options.check(options)
    properties = read_config_file(options.command_config)
    check_settings(ProducerSettings, properties)
    check_settings(FetcherSettings, properties)
    warn_of_unknown(ProducerSettings, properties)
    load = spark_options.import_load()
    partitions = have_topic(options, properties)
    if options.consumers > len(partitions):
        raise ToolError(f"--consumers {options.consumers}: the topic {options.topic} has {len(partitions)} partitions")
    with spark_options.reported_errors(), spark_options.open_session(options) as spark:
        tasks = spark_options.choose_tasks(options, spark, options.producers + options.consumers)
        plan = build_plan(options, properties, partitions, tasks)
        with ProgressBar("records read", options.num_records) as bar:
            follower = Follower("consumer", bar, options.reporting_interval / 1000, options.waits)
            result = load.run(spark, plan, follower, **spark_options.ways(options))
    return report(result, options, properties)


def check(options: argparse.Namespace) -> None:
    """Check the numbers in the options. Raises ToolError."""
    least = spark_options.import_load().STAMP_BYTES
    if options.record_size < least:
        raise ToolError(f"--record-size must be at least {least}: a stamp takes as many bytes")
    for name in ("num_records", "producers", "consumers", "throughput", "reporting_interval"):
        if getattr(options, name) <= 0:
            raise ToolError(f"--{name.replace('_', '-')} must be above 0")
    seconds = options.num_records / options.throughput
    if not 0 <= options.warm_up < seconds:
        raise ToolError(f"--warm-up {options.warm_up:g}: must be at least 0 and below the load's {seconds:g} seconds")


def build_plan(options: argparse.Namespace, properties: dict[str, str], partitions: list[int], tasks: int) -> LoadPlan:
    """Plan producers and consumers for the tasks. Consumers start at the current end offsets."""
    load = spark_options.import_load()
    with Admin(options.bootstrap_server, AdminSettings.acting(properties)) as admin:
        where = [TopicPartition(options.topic, index) for index in partitions]
        ends = {each: found.offset for each, found in admin.list_offsets(dict.fromkeys(where, LATEST)).items()}
    common = {"bootstrap_servers": options.bootstrap_server, "topic": options.topic, "warm_up_s": options.warm_up}
    producers = [
        load.ProducerPlan(
            **common,
            properties=load.build_producer_properties(
                {"linger.ms": "0", **properties, "acks": options.producer_acks}, number
            ),
            partitions=tuple(partitions[(number + n) % len(partitions)] for n in range(len(partitions))),
            record_size=options.record_size,
            records=records,
            steps=(load.Step(rate=options.throughput / options.producers),),
            stamped=True,
            nap_s=_NAP_S,
        )
        for number, records in enumerate(load.deal(options.num_records, options.producers))
    ]
    consumers = [
        load.ConsumerPlan(
            **common,
            properties=properties,
            assigned={(each.topic, each.partition): ends[each] for each in where[number :: options.consumers]},
            idle_s=_IDLE_S,
            stamped=True,
        )
        for number in range(options.consumers)
    ]
    plan: LoadPlan = load.LoadPlan(
        run=spark_options.new_run(),
        clients=(*producers, *consumers),
        tasks=tasks,
        interval_s=spark_options.interval_s(options),
    )
    return plan


def report(result: Result, options: argparse.Namespace, properties: dict[str, str]) -> int:
    """Print a line for each client and Kafka's two latency lines, and write the files."""
    for role in ("producer", "consumer"):
        for line in client_lines(result, role):
            print(line)
    print_latencies(result)
    report_clocks(result)
    wanted = {"topic": options.topic, "record_size": options.record_size, "throughput": options.throughput}
    write_files(result, options, {**wanted, "acks": options.producer_acks, "properties": properties})
    return report_missing(result, result.total("producer").records)


def print_latencies(result: Result) -> None:
    """Print the average and percentiles of the end-to-end latency in the format of Kafka's tool."""
    read = result.steady("consumer")
    if read.latencies.count:
        print(f"Avg latency: {read.latency_sum_us / read.latencies.count / 1000:.4f} ms")
        p50, p99, p999 = (read.latencies.at_quantile(q) // 1000 for q in (0.5, 0.99, 0.999))
        print(f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}")


def report_clocks(result: Result) -> None:
    """Print a warning if the clocks of the tasks differ too much for meaningful latencies."""
    differences = result.clock_differences_s.values()
    apart = max(differences) - min(differences) if differences else 0.0
    if apart > _CLOCKS_APART_S:
        print(f"WARNING: the clocks of the tasks' machines are {apart * 1000:.0f} ms apart", file=sys.stderr)


def report_missing(result: Result, expected: int) -> int:
    """Print missing records and early ends. Returns the exit status."""
    written, read = result.total("producer"), result.total("consumer")
    missing = expected - read.records
    if result.is_whole() and missing <= 0 and not any(client.timed_out for client in result.clients):
        return 0
    early = f"; ended early: {result.reason}" if result.reason else ""
    print(
        f"{missing} of {expected} records were not read that should have been, {written.failed} were given up{early}",
        file=sys.stderr,
    )
    return 1
