"""`pybroker get-offsets`: offsets of partitions by time, with the options and output of kafka-get-offsets.

Owns option names, the syntax of partition patterns and the output format, which are those of Kafka 4.3's tool. Must not
know the protocol: it uses Admin, and works with any Kafka.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.client.administration.topics import ListedOffset, TopicPartition
from pybroker.client.errors import BrokerError, ClientError
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse

    from pybroker.client.administration.admin import Admin

DESCRIPTION = "Get offsets of partitions. Options and output are those of kafka-get-offsets."

JSON = {
    "": [
        {
            "topic": "string",
            "partition": "integer",
            "offset": "integer",
            "timestampMs": "integer",
            "leaderEpoch": "integer",
        }
    ]
}
_TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
_UNKNOWN = -1
_RULE = re.compile(r"([^:,]*)(?::(?:([0-9]{0,10})|(?:([0-9]{0,10})-([0-9]{0,10}))))?")

IsWanted = Callable[[TopicPartition], bool]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_cluster_options(parser, properties=True)
    parser.add_argument("--topic", metavar="REGEX", help="the topics (default: all); not with --topic-partitions")
    parser.add_argument(
        "--partitions", metavar="IDS", help="the partitions (default: all); not with --topic-partitions"
    )
    parser.add_argument(
        "--topic-partitions",
        metavar="RULES",
        help="rules as topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3: a regular expression for the topic, then a "
        "partition or a range, whose upper bound is exclusive",
    )
    parser.add_argument(
        "--time", default="latest", metavar="TIME", help=f"milliseconds, or -1 to -6: {', '.join(_TIMES)}"
    )
    parser.add_argument("--exclude-internal-topics", action="store_true", help="exclude internal topics")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print `topic:partition:offset` of every partition that has an offset for the time, and return 0."""
    try:
        time, is_wanted = _parse_time(arguments.time), _parse_filter(arguments)
        with open_admin(arguments, {"client.id": "GetOffsetShell"}) as admin:
            found = _offsets(admin, _partitions(admin, is_wanted, arguments), time)
    except (ClientError, ConfigError) as error:
        raise CommandError(f"Error occurred: {error}") from None
    ordered = sorted(found, key=lambda partition: f"{partition.topic}-{partition.partition}")
    known = [(partition, found[partition]) for partition in ordered if found[partition].offset != _UNKNOWN]
    if arguments.json:
        print_json([_as_json(partition, listed) for partition, listed in known])
        return 0
    for partition, listed in known:
        print(f"{partition.topic}:{partition.partition}:{listed.offset}")
    return 0


def _as_json(partition: TopicPartition, listed: ListedOffset) -> dict[str, str | int]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": listed.offset,
        "timestampMs": listed.timestamp_ms,
        "leaderEpoch": listed.leader_epoch,
    }


def _parse_time(text: str) -> int:
    if text in _TIMES:
        return _TIMES[text]
    try:
        time = int(text)
        if -(2**63) <= time < 2**63:
            return time
        raise ValueError
    except ValueError:
        known = " / ".join(f"{time} or {name}" for name, time in _TIMES.items())
        raise CommandError(
            f"Error occurred: Malformed time argument {text}. Please use {known}, or a specified long format timestamp"
        ) from None


def _parse_filter(arguments: argparse.Namespace) -> IsWanted:
    if arguments.topic_partitions is None:
        topic, ids = _topic_pattern(arguments.topic), _partition_ids(arguments.partitions)
        return lambda partition: bool(topic.fullmatch(partition.topic)) and (not ids or partition.partition in ids)
    if arguments.topic is not None or arguments.partitions is not None:
        raise CommandError("Error occurred: --topic-partitions cannot be used with --topic or --partitions")
    rules = [_parse_rule(rule) for rule in arguments.topic_partitions.split(",")]
    return lambda partition: any(rule(partition) for rule in rules)


def _topic_pattern(text: str | None) -> re.Pattern[str]:
    """Parse a topic's regular expression as Kafka's tools: a comma is "or", and blanks and outer quotes are removed."""
    try:
        return re.compile((text or ".*").strip().replace(",", "|").replace(" ", "").strip("\"'"))
    except re.error as error:
        raise CommandError(f"Error occurred: {text} is an invalid regex: {error}") from None


def _partition_ids(text: str | None) -> frozenset[int]:
    if not text:
        return frozenset()
    try:
        return frozenset(map(int, text.split(",")))
    except ValueError:
        expected = "a comma separated list of numeric partition ids"
        raise CommandError(f"Error occurred: --partitions expects {expected}, but received: {text}") from None


def _parse_rule(text: str) -> IsWanted:
    rule = _RULE.fullmatch(text)
    if rule is None:
        raise CommandError(f"Error occurred: Invalid rule specification: {text}")
    topic, (one, lower, upper) = _topic_pattern(rule[1]), rule.groups()[1:]
    if one:
        first, end = int(one), int(one) + 1
    else:
        first, end = int(lower or 0), int(upper or 2**31 - 1)
    return lambda partition: bool(topic.fullmatch(partition.topic)) and first <= partition.partition < end


def _partitions(admin: Admin, is_wanted: IsWanted, arguments: argparse.Namespace) -> list[TopicPartition]:
    names = admin.list_topics(internal=not arguments.exclude_internal_topics)
    topics = admin.describe_topics(names) if names else []
    every = (TopicPartition(topic.name, partition.index) for topic in topics for partition in topic.partitions)
    found = [partition for partition in every if is_wanted(partition)]
    if not found:
        raise CommandError("Error occurred: Could not match any topic-partitions with the specified filters")
    return found


def _offsets(admin: Admin, partitions: list[TopicPartition], time: int) -> dict[TopicPartition, ListedOffset]:
    """Query all partitions together; after an error one by one, so that the others are returned."""
    try:
        return admin.list_offsets(dict.fromkeys(partitions, time))
    except BrokerError:
        found: dict[TopicPartition, ListedOffset] = {}
    for partition in partitions:
        try:
            found |= admin.list_offsets({partition: time})
        except BrokerError as error:
            name = f"{partition.topic}-{partition.partition}"
            print(f"Skip getting offsets for topic-partition {name} due to error: {error}", file=sys.stderr)
    return found
