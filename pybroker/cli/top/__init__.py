"""`pybroker top`: what a cluster is doing now: topics and partitions by records a second, groups by lag, clients.

sampling   the requests of one sample
clients    queries of the brokers' admin listeners
rates      the difference of two samples
screen     the live view of a terminal (rich)

Owns options, and the time of samples. Works with any Kafka, by Admin only: rates are those of offsets, so transaction
markers count, too. Only pybroker's admin listeners report clients.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.cli.kafka_exceptions import java_text
from pybroker.cli.tables import table_lines
from pybroker.cli.top.clients import parse_addresses, query_clients
from pybroker.cli.top.rates import CLIENT_HEAD, GROUP_HEAD, PARTITION_HEAD, TOPIC_HEAD, View, build_view, summary
from pybroker.cli.top.sampling import take_sample
from pybroker.cli.top.screen import show_live
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse

    from pybroker.cli.top.sampling import Sample
    from pybroker.client.administration.admin import Admin

DESCRIPTION = (
    "Show what a cluster is doing now: topics and partitions by records a second, groups by lag, and with --metrics "
    "clients that have a quota, by bytes a second. It runs until Ctrl-C; with --once it measures one interval and "
    "ends. The live view needs the package rich."
)
JSON = {
    "": {
        "seconds": "number",
        "brokers": "integer",
        "topicCount": "integer",
        "partitionCount": "integer",
        "withoutLeader": "integer",
        "underReplicated": "integer",
        "recordsPerSecond": "number",
        "topics": [{"topic": "string", "partitions": "integer", "recordsPerSecond": "number", "records": "integer"}],
        "partitions": [
            {
                "topic": "string",
                "partition": "integer",
                "leader": "integer|null",
                "recordsPerSecond": "number",
                "endOffset": "integer",
            }
        ],
        "groups": [
            {
                "group": "string",
                "state": "string",
                "partitions": "integer",
                "recordsPerSecond": "number",
                "lag": "integer",
                "secondsBehind": "number|null",
            }
        ],
        "groupsLeftOut": "integer",
        "clients": [
            {
                "user": "string",
                "clientId": "string",
                "bytesInPerSecond": "number",
                "bytesOutPerSecond": "number",
                "throttledSecondsPerSecond": "number",
            }
        ],
    }
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_cluster_options(parser)
    parser.add_argument(
        "--interval",
        type=float,
        default=2.0,
        metavar="SECONDS",
        help="time between two measurements (default: %(default)g)",
    )
    parser.add_argument(
        "--rows", type=int, default=15, metavar="N", help="maximum rows of a table (default: %(default)s)"
    )
    parser.add_argument(
        "--most-groups", type=int, default=100, metavar="N", help="maximum groups to describe (default: %(default)s)"
    )
    parser.add_argument(
        "--metrics",
        metavar="HOST:PORT,...",
        help="admin listeners of brokers (admin.http.listener), to print the quota usage of clients",
    )
    parser.add_argument("--internal", action="store_true", help="include internal topics")
    parser.add_argument("--once", action="store_true", help="measure one interval, print it and exit")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Sample until the user ends it, or once, and return 0."""
    for name in ("interval", "rows", "most_groups"):
        if getattr(arguments, name) <= 0:
            raise CommandError(f"--{name.replace('_', '-')} {getattr(arguments, name):g}: expected more than 0", 2)
    try:
        with open_admin(arguments) as admin:
            if arguments.once or arguments.json:
                before = _sample(admin, arguments)
                time.sleep(arguments.interval)
                _print(build_view(before, _sample(admin, arguments)), arguments)
                return 0
            show_live(
                lambda: _sample(admin, arguments),
                interval_s=arguments.interval,
                rows=arguments.rows,
                title=arguments.bootstrap_server,
            )
    except ClientError as error:
        raise CommandError(java_text(error)) from None
    except ConfigError as error:
        raise CommandError(str(error)) from None
    return 0


def _sample(admin: Admin, arguments: argparse.Namespace) -> Sample:
    sample = take_sample(admin, time.monotonic, internal=arguments.internal, most_groups=arguments.most_groups)
    if arguments.metrics is None:
        return sample
    return sample._replace(clients=query_clients(parse_addresses(arguments.metrics)))


def _print(view: View, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json(view.as_json())
        return
    print(summary(view))
    tables = (
        (TOPIC_HEAD, [row.cells() for row in view.topics]),
        (PARTITION_HEAD, [row.cells() for row in view.partitions]),
        (GROUP_HEAD, [row.cells() for row in view.groups]),
        (CLIENT_HEAD, [row.cells() for row in view.clients]),
    )
    for head, rows in tables:
        if rows:
            print()
            print("\n".join(line.rstrip() for line in table_lines([head, *rows[: arguments.rows]])))
