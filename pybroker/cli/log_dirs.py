"""`pybroker log-dirs`: what lies in the log directories of brokers, with the options and output of kafka-log-dirs.

Owns the output of `--describe`, which is that of Kafka 4.3's tool, including the order of a Java hash table. Must not
know the protocol: it uses Admin, and works with any Kafka. `log_dirs_local` implements `--verify` and `--damage`, which
read directories of this machine.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.kafka_exceptions import java_class
from pybroker.cli.log_dirs_local import add_local_arguments, show_damage, verify
from pybroker.client.errors import ClientError
from pybroker.client.java.hash_order import HashOrderedSet, partition_hash, string_hash
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from pybroker.client.administration.log_dirs import LogDirDescription

DESCRIPTION = (
    "Show what lies in the log directories of brokers (--describe: options and output are those of kafka-log-dirs), "
    "check the directories of a stopped broker (--verify), or list the losses that its starts have found (--damage)."
)

_VERSION = 1


JSON = {
    "--describe": {
        "brokers": [
            {
                "broker": "integer",
                "logDirs": [
                    {
                        "partitions": [
                            {
                                "partition": "string",
                                "size": "integer",
                                "offsetLag": "integer",
                                "isFuture": "boolean",
                            }
                        ],
                        "error": "string|null",
                        "logDir": "string",
                    }
                ],
            }
        ],
        "version": "integer",
    }
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_cluster_options(parser, required=False)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--describe", action="store_true", help="describe the log directories")
    add_local_arguments(parser, what)
    parser.add_argument(
        "--topic-list", default="", metavar="TOPICS", help="only these topics, separated by commas; else all"
    )
    parser.add_argument(
        "--broker-list", default="", metavar="IDS", help="only these brokers, separated by commas; else all"
    )


def run(arguments: argparse.Namespace) -> int:
    """Execute the action. Returns 0 on success and, with --verify, without damage."""
    if arguments.verify:
        return verify(arguments)
    if arguments.damage:
        return show_damage(arguments)
    if arguments.bootstrap_server is None:
        raise CommandError("--describe asks brokers: name them by --bootstrap-server HOST:PORT", 2)
    return _describe(arguments)


def _describe(arguments: argparse.Namespace) -> int:
    """Query the brokers, print the directories as one line of JSON, and return 0."""
    wanted = parse_brokers(arguments.broker_list)
    report = (lambda _words: None) if arguments.json else print
    try:
        with open_admin(arguments) as admin:
            there = {broker.node_id for broker in admin.describe_cluster().brokers}
            if not wanted <= there:
                raise CommandError(
                    f"ERROR: The given brokers do not exist from --broker-list: {_listed(wanted - there)}. "
                    f"Current existent brokers: {_listed(there)}"
                )
            report("Querying brokers for log directories information")
            described = admin.describe_log_dirs(sorted(wanted or there))
    except (ClientError, ConfigError) as error:
        raise CommandError(str(error)) from None
    report(f"Received log directory information from brokers {_listed(described)}")
    print(build_json(described, set(filter(None, arguments.topic_list.split(",")))))
    return 0


def parse_brokers(text: str) -> set[int]:
    """Parse a list of broker ids. Raises CommandError."""
    names = [name.strip() for name in text.split(",") if name]
    for name in names:
        if not name.isdigit():
            raise CommandError(f"--broker-list {text}: {name!r} is no broker's id, expected whole numbers")
    return set(map(int, names))


def build_json(described: Mapping[int, Mapping[str, LogDirDescription]], topics: set[str]) -> str:
    """Return the line, with the replicas of these topics or, without any, of all."""
    brokers = [
        {"broker": broker, "logDirs": [_directory(path, directories[path], topics) for path in _in_order(directories)]}
        for broker, directories in described.items()
    ]
    return json.dumps({"brokers": brokers, "version": _VERSION}, ensure_ascii=False, separators=(",", ":"))


def _in_order(paths: Iterable[str]) -> HashOrderedSet[str]:
    """Return paths in the order of Kafka's client, whose hash table has the size of their number, not sixteen."""
    paths = list(paths)
    return HashOrderedSet(string_hash, paths, smallest_table=1 << (len(paths) - 1).bit_length())


def _directory(path: str, directory: LogDirDescription, topics: set[str]) -> dict[str, Any]:
    shown = [partition for partition in directory.replicas if not topics or partition.topic in topics]
    return {
        "partitions": [
            {
                "partition": f"{partition.topic}-{partition.partition}",
                "size": directory.replicas[partition].size,
                "offsetLag": directory.replicas[partition].offset_lag,
                "isFuture": directory.replicas[partition].is_future,
            }
            for partition in HashOrderedSet(partition_hash, shown)
        ],
        "error": java_class(directory.error) if directory.error else None,
        "logDir": path,
    }


def _listed(brokers: Iterable[int]) -> str:
    return ",".join(map(str, sorted(brokers)))
