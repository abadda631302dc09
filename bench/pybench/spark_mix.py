"""`spark-mix`: a scenario of concurrent producers and consumers, read from TOML, as one Spark job.

`pybroker_spark.load.mix` defines the format. Missing topics are created. Prints Kafka's lines for the total and for
each client, and the latencies from stamp to arrival.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench import spark_options
from pybench.spark_e2e_latency import print_latencies, report_clocks, report_missing
from pybench.spark_follow import Follower, client_lines, consumer_line, producer_line
from pybench.spark_output import write_files
from pybroker.cli.perf.options import add_json_option, check_settings, read_command_properties, read_config_file
from pybroker.cli.perf.progress import ProgressBar
from pybroker.client import LATEST, Admin, BrokerError, NewTopic, TopicPartition
from pybroker.client.settings import AdminSettings, ConsumerSettings, ProducerSettings
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pybroker_spark.load import Result
    from pybroker_spark.load.mix import Scenario, Topic


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the scenario, the cluster and Spark."""
    add = parser.add_argument
    add("scenario", type=Path, metavar="FILE", help="The scenario, a TOML file.")
    add("--bootstrap-server", required=True, metavar="SERVER", help="REQUIRED: The server(s) to connect to.")
    add("--command-config", metavar="FILE", help="Config properties file of all clients.")
    pairs: dict[str, Any] = {"nargs": "+", "action": "append", "metavar": "PROP=VALUE"}
    add("--command-property", **pairs, help="Properties of all clients; the scenario's own take precedence.")
    add("--reporting-interval", type=int, default=5000, metavar="MS", help="Interval of progress info (default: 5000).")
    add_json_option(parser)
    spark_options.add_options(parser)


def main(options: argparse.Namespace) -> int:
    """Run the load. Returns 0 if every acknowledged record was consumed, 1 if not."""
    load = spark_options.import_load()
    mix = importlib.import_module("pybroker_spark.load.mix")
    spark_options.check(options)
    with spark_options.reported_errors():
        scenario: Scenario = mix.read_scenario(options.scenario)
        properties = {**read_config_file(options.command_config), **read_command_properties(options.command_property)}
        check_settings(ProducerSettings, properties)
        check_settings(ConsumerSettings, properties)
        with Admin(options.bootstrap_server, AdminSettings.acting(properties)) as admin:
            ends = have_topics(admin, scenario.topics)
            place_groups(admin, scenario, ends)
        with spark_options.open_session(options) as spark:
            plan = mix.build_plan(
                scenario,
                options.bootstrap_server,
                ends,
                run=spark_options.new_run(),
                tasks=spark_options.choose_tasks(options, spark, scenario.clients()),
                interval_s=spark_options.interval_s(options),
                properties=properties,
            )
            with ProgressBar("records sent", count_planned(scenario)) as bar:
                follower = Follower("producer", bar, options.reporting_interval / 1000, options.waits)
                result = load.run(spark, plan, follower, **spark_options.ways(options))
    return report(result, scenario, options, properties)


def have_topics(admin: Admin, topics: tuple[Topic, ...]) -> dict[str, list[int]]:
    """Create missing topics. Returns the current end offsets of each topic's partitions."""
    ends: dict[str, list[int]] = {}
    for topic in topics:
        try:
            (found,) = admin.describe_topics([topic.name])
        except BrokerError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            wanted = NewTopic(topic.name, topic.partitions, topic.replication_factor, topic.build_config())
            admin.create_topics([wanted])
            found = admin.wait_for_leaders(topic.name)
        if len(found.partitions) != topic.partitions:
            print(
                f"WARNING: topic {topic.name} is there with {len(found.partitions)} partitions, not with the"
                f" scenario's {topic.partitions}: the load runs on those that are there",
                file=sys.stderr,
            )
        where = [TopicPartition(topic.name, partition.index) for partition in found.partitions]
        listed = admin.list_offsets(dict.fromkeys(where, LATEST))
        ends[topic.name] = [listed[each].offset for each in sorted(where, key=lambda each: each.partition)]
    return ends


def place_groups(admin: Admin, scenario: Scenario, ends: dict[str, list[int]]) -> None:
    """Commit the current end offsets for the groups, so that late members also start there."""
    for consumers in scenario.consumers:
        if consumers.group:
            offsets = {TopicPartition(consumers.topic, p): end for p, end in enumerate(ends[consumers.topic])}
            admin.alter_group_offsets(consumers.group, offsets)


def count_planned(scenario: Scenario) -> int:
    """Return the number of records that the rates yield, 0 if a producer has no rate."""
    rate = sum(producers.rate for producers in scenario.producers)
    return round(sum(rate * step.rate * step.seconds for step in scenario.steps)) if rate < math.inf else 0


def count_expected(result: Result, scenario: Scenario) -> int:
    """Return the number of records that consumers should read: each `consumers` entry reads its whole topic."""
    given: dict[str, int] = {}
    for each in result.acknowledged():
        given[each.topic] = given.get(each.topic, 0) + each.acknowledged
    return sum(given.get(consumers.topic, 0) for consumers in scenario.consumers)


def report(result: Result, scenario: Scenario, options: argparse.Namespace, properties: dict[str, str]) -> int:
    """Print a line for each client and the totals, and write the files."""
    print(scenario.title)
    for role in ("producer", "consumer"):
        for line in client_lines(result, role):
            print(line)
    print(producer_line(result.total("producer")))
    if scenario.warm_up_seconds:
        print(producer_line(result.steady("producer"), steady_state=True))
    if scenario.consumers:
        print(consumer_line(result.total("consumer")))
        print_latencies(result)
        report_clocks(result)
    write_files(result, options, {"title": scenario.title, "scenario": str(options.scenario), "properties": properties})
    return report_missing(result, count_expected(result, scenario))
