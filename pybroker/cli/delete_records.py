"""`pybroker delete-records`: give logs a later start, with the options and output of kafka-delete-records.

Owns the form of the offsets file, and the output, which are those of Kafka 4.3's tool. Must not know the protocol: it
uses Admin, and works with any Kafka.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_files import as_array, as_object, integer_of, long_of, string_of
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.cli.kafka_exceptions import java_text
from pybroker.cli.text_files import read_text
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import BrokerError, ClientError
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Delete the records of partitions before an offset. Options and output are those of kafka-delete-records."

JSON = {
    "": [{"topic": "string", "partition": "integer", "lowWatermark": "integer|null", "error": "string|null"}],
}
_VERSION = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_cluster_options(parser)
    parser.add_argument(
        "--offset-json-file",
        required=True,
        type=Path,
        metavar="FILE",
        help='offsets by partition: {"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}; '
        "offset -1 deletes all records",
    )
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Delete records, print the result of each partition, and return 0."""
    offsets = parse_offsets(read_text(arguments.offset_json_file))
    try:
        with open_admin(arguments) as admin:
            if not arguments.json:
                print("Executing records delete operation")
            outcomes = admin.delete_records(offsets)
    except (ClientError, ConfigError) as error:
        raise CommandError(str(error)) from None
    # The order of Kafka's tool changes with every run.
    ordered = sorted(outcomes, key=lambda one: (one.topic, one.partition))
    if arguments.json:
        print_json([_as_json(partition, outcomes[partition]) for partition in ordered])
        return 0
    print("Records delete operation completed:")
    for partition in ordered:
        outcome = outcomes[partition]
        result = f"error: {java_text(outcome)}" if isinstance(outcome, BrokerError) else f"low_watermark: {outcome}"
        print(f"partition: {partition.topic}-{partition.partition}\t{result}")
    return 0


def _as_json(partition: TopicPartition, outcome: int | BrokerError) -> dict[str, str | int | None]:
    error, watermark = (java_text(outcome), None) if isinstance(outcome, BrokerError) else (None, outcome)
    return {"topic": partition.topic, "partition": partition.partition, "lowWatermark": watermark, "error": error}


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Parse the offsets in a file. Raises CommandError with the message of Kafka's tool."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise CommandError("The input string is not a valid JSON") from None
    content = as_object(content)
    version = integer_of(content, "version") if "version" in content else _VERSION
    if version != _VERSION:
        raise CommandError(f"Not supported version field value {version}")
    if "partitions" not in content:
        raise CommandError("Missing partitions field")
    offsets: dict[TopicPartition, int] = {}
    twice: dict[TopicPartition, None] = {}
    for item in map(as_object, as_array(content["partitions"])):
        partition, offset = _parse(item)
        if partition in offsets:
            twice[partition] = None
        offsets[partition] = offset
    if twice:
        names = ",".join(f"{one.topic}-{one.partition}" for one in twice)
        raise CommandError(f"Offset json file contains duplicate topic partitions: {names}")
    return offsets


def _parse(item: dict[str, Any]) -> tuple[TopicPartition, int]:
    return TopicPartition(string_of(item, "topic"), integer_of(item, "partition")), long_of(item, "offset")
