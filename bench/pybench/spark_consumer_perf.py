"""kafka-consumer-perf-test as one Spark job: partitions, or members of a group, distributed to tasks.

It has Kafka's options, and prints Kafka's lines for all tasks together and a line for each. `--num-records` is the
total. Without `--group`, the partitions are assigned, balanced by their number of records.
"""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import TYPE_CHECKING

from pybench import spark_options
from pybench.spark_follow import Follower, client_lines
from pybench.spark_output import write_files
from pybroker.cli.perf import consumer_perf, formats
from pybroker.cli.perf.options import ToolError, check_settings, warn_of_unknown
from pybroker.cli.perf.progress import ProgressBar
from pybroker.client import EARLIEST, LATEST, Admin, TopicPartition
from pybroker.client.settings import AdminSettings, ConsumerSettings, FetcherSettings

if TYPE_CHECKING:
    from pybroker_spark.load import LoadPlan, Result


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add Kafka's and Spark's options."""
    consumer_perf.add_options(parser)
    parser.add_argument(
        "--stamped", action="store_true", help="Take latencies from the stamps of records that a load generator made."
    )
    spark_options.add_options(parser)


def main(options: argparse.Namespace) -> int:
    """Run the load. Returns 1 if a task was lost, else 0, even if too few records arrived, as Kafka's tool does."""
    wanted, word = consumer_perf.read_wanted(options)
    for name in ("print_metrics", "show_detailed_stats"):
        if getattr(options, name):
            raise ToolError(f"--{name.replace('_', '-')}: the tasks' intervals are in --json and --parquet")
    spark_options.check(options)
    properties = consumer_perf.read_properties(options)
    settings = FetcherSettings if options.group is None else ConsumerSettings
    check_settings(settings, properties)
    warn_of_unknown(settings, properties)
    load = spark_options.import_load()
    held = find_held(options, properties)
    with spark_options.reported_errors(), spark_options.open_session(options) as spark:
        tasks = spark_options.choose_tasks(options, spark, None if options.tasks else len(held))
        plan = build_plan(options, properties, held, tasks, wanted)
        with ProgressBar("records read", wanted) as bar:
            follower = Follower("consumer", bar, options.reporting_interval / 1000, options.waits)
            result = load.run(spark, plan, follower, **spark_options.ways(options))
    return report(result, options, properties, (wanted, word))


def find_held(options: argparse.Namespace, properties: dict[str, str]) -> dict[TopicPartition, tuple[int, int]]:
    """Return the first offset and the number of records of each partition. Raises ToolError or BrokerError."""
    partitions = consumer_perf.find_partitions(options, properties)
    with Admin(options.bootstrap_server, AdminSettings.acting(properties)) as admin:
        ends = admin.list_offsets(dict.fromkeys(partitions, LATEST))
        begins = ends if options.from_latest else admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
    return {each: (begins[each].offset, ends[each].offset - begins[each].offset) for each in partitions}


def deal_partitions(held: dict[TopicPartition, tuple[int, int]], tasks: int) -> list[list[TopicPartition]]:
    """Assign partitions to tasks: largest first, each to the task with the fewest records so far."""
    shares: list[list[TopicPartition]] = [[] for _ in range(tasks)]
    weights = [0] * tasks
    for partition in sorted(held, key=lambda each: (-held[each][1], each.topic, each.partition)):
        least = min(range(tasks), key=lambda task: (weights[task], len(shares[task]), task))
        shares[least].append(partition)
        weights[least] += held[partition][1]
    return shares


def build_plan(
    options: argparse.Namespace,
    properties: dict[str, str],
    held: dict[TopicPartition, tuple[int, int]],
    tasks: int,
    wanted: int,
) -> LoadPlan:
    """Plan one consumer for each task. Raises ToolError if there are more tasks than partitions to assign."""
    load = spark_options.import_load()
    topic, idle_s = options.topic or options.include, options.timeout / 1000
    common = {"bootstrap_servers": options.bootstrap_server, "topic": topic, "idle_s": idle_s}
    common["stamped"] = options.stamped
    if options.group is not None:
        member = {**properties, "group.id": options.group}
        topics = tuple(sorted({partition.topic for partition in held}))
        clients = [load.ConsumerPlan(**common, properties=member, group_topics=topics) for _ in range(tasks)]
        group_records: int | None = wanted
    else:
        if tasks > len(held):
            raise ToolError(f"--tasks {tasks}: {topic} has {len(held)} partitions to assign: set --tasks {len(held)}")
        shares = deal_partitions(held, tasks)
        quotas = load.deal_by_weight(wanted, [sum(held[each][1] for each in share) for share in shares])
        clients = [
            load.ConsumerPlan(
                **common,
                properties=properties,
                assigned={(each.topic, each.partition): held[each][0] for each in share},
                records=quota,
            )
            for share, quota in zip(shares, quotas, strict=True)
        ]
        group_records = None
    plan: LoadPlan = load.LoadPlan(
        run=spark_options.new_run(),
        clients=tuple(clients),
        tasks=tasks,
        interval_s=spark_options.interval_s(options),
        group_records=group_records,
    )
    return plan


def report(result: Result, options: argparse.Namespace, properties: dict[str, str], wanted: tuple[int, str]) -> int:
    """Print Kafka's header and row for the total and a line for each task, and write the files."""
    for line in client_lines(result, "consumer"):
        print(line)
    total = result.total("consumer")
    if total.records < wanted[0] and any(client.timed_out for client in result.clients):
        print(formats.consumer_timeout(options.timeout, wanted[1]))
    if not options.hide_header:
        print(formats.CONSUMER_HEADER)
    begin, end = (
        formats.java_date(options.date_format, datetime.fromtimestamp(moment))
        for moment in (result.started_at, result.started_at + total.seconds)
    )
    rebalance_ms = round(max(client.rebalance_s for client in result.clients) * 1000)
    elapsed_ms = max(1, round(total.seconds * 1000))
    print(formats.consumer_total(begin, end, total.bytes, total.records, elapsed_ms, rebalance_ms))
    write_files(result, options, {"topic": options.topic or options.include, "properties": properties})
    return 0 if all(client.state in ("done", "stopped") for client in result.clients) and not result.reason else 1
