"""`pybroker leader-election`: elect leaders of partitions, with the options and output of kafka-leader-election.

Owns the form of the partitions file, and the output, which are those of Kafka 4.3's tool. Must not know the protocol:
it uses Admin, and works with any Kafka.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_files import as_array, as_object, integer_of, string_of
from pybroker.cli.kafka_exceptions import java_text
from pybroker.cli.text_files import read_text
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

DESCRIPTION = "Elect preferred or unclean leaders of partitions. Options and output are those of kafka-leader-election."

_UNCLEAN = "UNCLEAN"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_cluster_options(parser)
    parser.add_argument(
        "--admin.config", type=Path, metavar="FILE", dest="command_config", help="deprecated: --command-config"
    )
    parser.add_argument(
        "--election-type",
        required=True,
        type=str.upper,
        choices=("PREFERRED", _UNCLEAN),
        help="preferred: elect the first replica; unclean: elect any replica of a leaderless partition",
    )
    parser.add_argument("--topic", metavar="TOPIC", help="topic of the partition, with --partition")
    parser.add_argument("--partition", type=int, metavar="N", help="partition to elect a leader for, with --topic")
    parser.add_argument("--all-topic-partitions", action="store_true", help="all partitions that need an election")
    parser.add_argument(
        "--path-to-json-file",
        type=Path,
        metavar="FILE",
        help='JSON file, as {"partitions": [{"topic": "foo", "partition": 1}, {"topic": "foobar", "partition": 2}]}',
    )


def run(arguments: argparse.Namespace) -> int:
    """Elect leaders, print the result of the partitions, and return 0 where no election failed."""
    partitions = _partitions(arguments)
    try:
        with open_admin(arguments) as admin:
            outcomes = admin.elect_leaders(partitions, unclean=arguments.election_type == _UNCLEAN)
    except (ClientError, ConfigError) as error:
        raise CommandError(str(error)) from None
    elected: list[TopicPartition] = []
    idle: list[TopicPartition] = []
    failed: list[str] = []
    # Kafka's tool prints them in the order of a hash table.
    for partition, refusal in sorted(outcomes.items(), key=lambda one: (one[0].topic, one[0].partition)):
        if refusal is None:
            elected.append(partition)
        elif refusal.code is ErrorCode.ELECTION_NOT_NEEDED:
            idle.append(partition)
        else:
            failed.append(f"{_name(partition)}: {java_text(refusal)}")
    if elected:
        print(f"Successfully completed leader election ({arguments.election_type}) for partitions {_names(elected)}")
    if idle:
        print(f"Valid replica already elected for partitions {_names(idle)}")
    for failure in failed:
        print(f"Error completing leader election ({arguments.election_type}) for partition: {failure}")
    if failed:
        raise CommandError(f"{len(failed)} replica(s) could not be elected")
    return 0


def _partitions(arguments: argparse.Namespace) -> list[TopicPartition] | None:
    """Return the partitions to elect, None for all. Raises CommandError with the message of Kafka's tool."""
    ways = (arguments.topic is not None, arguments.all_topic_partitions, arguments.path_to_json_file is not None)
    if sum(ways) != 1:
        raise CommandError(
            "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"
        )
    if arguments.topic is not None:
        if arguments.partition is None:
            raise CommandError("Missing required option(s): partition")
        return [TopicPartition(arguments.topic, arguments.partition)]
    if arguments.partition is not None:
        raise CommandError("Option partition is only allowed if topic is used")
    return None if arguments.all_topic_partitions else parse_partitions(read_text(arguments.path_to_json_file))


def parse_partitions(text: str) -> list[TopicPartition]:
    """Parse the partitions in a file. Raises CommandError with the message of Kafka's tool."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise CommandError("Replica election data is empty") from None
    if "partitions" not in as_object(content):
        raise CommandError('Replica election data is missing "partitions" field')
    partitions = [_parse(as_object(item)) for item in as_array(content["partitions"])]
    twice = [partition for partition in dict.fromkeys(partitions) if partitions.count(partition) > 1]
    if twice:
        raise CommandError(f"Replica election data contains duplicate partitions: [{_names(twice)}]")
    return partitions


def _parse(item: dict[str, Any]) -> TopicPartition:
    return TopicPartition(string_of(item, "topic"), integer_of(item, "partition"))


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(_name, partitions))
