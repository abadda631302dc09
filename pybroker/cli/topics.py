"""`pybroker topics`: create, list, describe, enlarge and delete topics, with kafka-topics' options and output.

Owns option names and output formats, which are those of Kafka 4.3's tool. Must not know the protocol: it uses Admin,
and works with any Kafka.

Errors are printed on standard output with the message of Kafka's tool, and on standard error with the exception's name.

Eligible leader replicas are N/A where the broker does not return them, and as in Kafka's tool with `--topic-id`.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json, refuse_json
from pybroker.cli.kafka_exceptions import java_text, java_words
from pybroker.cli.option_rules import conflict, is_given, refuse_with, require
from pybroker.cli.uuids import parse_uuid
from pybroker.client.administration.topics import (
    ConfigEntry,
    MorePartitions,
    NewTopic,
    PartitionDescription,
    Reassignment,
    TopicDescription,
)
from pybroker.client.errors import BrokerError, ClientError, UnservedApiError
from pybroker.client.java.hash_order import in_hash_order
from pybroker.config.errors import ConfigError
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pybroker.client.administration.admin import Admin

DESCRIPTION = "Create, list, describe, alter and delete topics. Options and output are those of kafka-topics."

JSON = {
    "--list": ["string"],
    "--describe": [
        {
            "topic": "string",
            "topicId": "string",
            "replicationFactor": "integer",
            "configs": {"<key>": "string|null"},
            "partitions": [
                {
                    "partition": "integer",
                    "leader": "integer|null",
                    "leaderEpoch": "integer",
                    "replicas": ["integer"],
                    "isr": ["integer"],
                    "elr": ["integer"],
                    "lastKnownElr": ["integer"],
                    "addingReplicas": ["integer"],
                    "removingReplicas": ["integer"],
                }
            ],
        }
    ],
}
_DEFAULT_CONFIG = 5
_NO_ID = bytes(16)
_REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)
_PARTITION_FILTERS = {
    "under-replicated": "partitions with an out-of-sync replica",
    "unavailable": "partitions without a leader",
    "under-min-isr": "partitions with fewer in-sync replicas than min.insync.replicas",
    "at-min-isr": "partitions with exactly min.insync.replicas in-sync replicas",
}
_GOES_WITH = {
    "config": ("create",),
    "partitions": ("alter", "create"),
    "replication-factor": ("create",),
    "replica-assignment": ("alter", "create"),
    **dict.fromkeys(_REPORTS, ("describe",)),
    "topics-with-overrides": ("describe",),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}
"""The actions that allow an option, in the order of Kafka's checks; all actions allow the other options."""
_COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)
_ONLY_ID = "Only topic id will be used when both --topic and --topic-id are specified and topicId is not Uuid.ZERO_UUID"


class _FailedError(Exception):
    """An error that this command itself detects during an action; `about` is a subject missing in the message."""

    def __init__(self, words: str, about: str = "") -> None:
        super().__init__(words)
        self.about = about


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_cluster_options(parser, properties=True)
    action = parser.add_mutually_exclusive_group(required=True)
    for name, what in (
        ("create", "create a topic"),
        ("list", "list topics"),
        ("describe", "describe topics"),
        ("alter", "change the number of partitions"),
        ("delete", "delete topics"),
    ):
        action.add_argument(f"--{name}", action="store_const", const=name, dest="action", help=what)
    parser.add_argument("--topic", metavar="TOPIC", help="the topic; a regular expression except with --create")
    parser.add_argument("--topic-id", metavar="ID", help="the id of the topic to describe")
    _add_creation(parser)
    parser.add_argument("--if-exists", action="store_true", help="do not fail if the topic does not exist")
    parser.add_argument("--exclude-internal", action="store_true", help="exclude internal topics")
    for name, which in _PARTITION_FILTERS.items():
        parser.add_argument(f"--{name}-partitions", action="store_true", help=f"with --describe: only {which}")
    parser.add_argument("--topics-with-overrides", action="store_true", help="with --describe: only such topics")
    parser.add_argument(
        "--partition-size-limit-per-response",
        type=int,
        default=2000,
        metavar="N",
        help="with --describe: maximum partitions per request (%(default)s)",
    )
    add_json_option(parser)


def _add_creation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--partitions", type=int, metavar="N", help="number of partitions (default: num.partitions of the broker)"
    )
    parser.add_argument(
        "--replication-factor",
        type=int,
        metavar="N",
        help="number of replicas (default: default.replication.factor of the broker)",
    )
    parser.add_argument("--replica-assignment", metavar="IDS", help="replicas of each partition, such as 1:2,2:3")
    parser.add_argument("--config", action="append", default=[], metavar="K=V", help="a setting of the new topic")
    parser.add_argument("--if-not-exists", action="store_true", help="do not fail if the topic exists")


def run(arguments: argparse.Namespace) -> int:
    """Execute the action and return 0."""
    if arguments.action not in ("list", "describe"):
        refuse_json(arguments, "--list and --describe")
    _check_required(arguments)
    _check_excluded(arguments)
    try:
        with open_admin(arguments) as admin:
            _ACTIONS[arguments.action](admin, arguments)
    except (_FailedError, ClientError, ConfigError) as error:
        words = java_words(error) if isinstance(error, BrokerError) else str(error)
        about = error.about if isinstance(error, _FailedError) else ""
        raise CommandError(java_text(error) if isinstance(error, BrokerError) else about + words) from None
    return 0


def _check_required(arguments: argparse.Namespace) -> None:
    """Reject an action without its required options, as Kafka's tool. Raises CommandError."""
    if arguments.action == "describe" and arguments.if_exists:
        if arguments.topic is None and arguments.topic_id is None:
            raise CommandError("--topic or --topic-id is required to describe a topic")
        if arguments.topic is not None and arguments.topic_id is not None and not arguments.json:
            print(_ONLY_ID)
    if arguments.action not in ("list", "describe"):
        require(arguments, "topic")
    if arguments.action == "alter":
        if arguments.config:
            raise CommandError(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option "[alter]" '
                "(To alter topic configurations, the kafka-configs tool can be used.)"
            )
        require(arguments, "partitions")


def _check_excluded(arguments: argparse.Namespace) -> None:
    """Reject options that exclude the action or each other, as Kafka's tool. Raises CommandError."""
    for option, actions in _GOES_WITH.items():
        if is_given(arguments, option) and arguments.action not in actions:
            raise conflict(option, arguments.action)
        if option == "replica-assignment" and arguments.action == "create":
            refuse_with(arguments, option, "partitions", "replication-factor")
        if option in _REPORTS:
            refuse_with(arguments, option, "topics-with-overrides")


def _create(admin: Admin, arguments: argparse.Namespace) -> None:
    name = arguments.topic
    if arguments.partitions is not None and arguments.partitions < 1:
        raise _FailedError("The partitions must be greater than 0")
    if arguments.replication_factor is not None and not 1 <= arguments.replication_factor <= 32767:
        raise _FailedError("The replication factor must be between 1 and 32767 inclusive")
    if "." in name or "_" in name:
        print(_COLLISION)
    topic = NewTopic(
        name,
        -1 if arguments.partitions is None else arguments.partitions,
        -1 if arguments.replication_factor is None else arguments.replication_factor,
        _topic_settings(arguments.config),
        _assignments(arguments.replica_assignment),
    )
    try:
        admin.create_topics([topic])
    except BrokerError as error:
        if arguments.if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return
        raise
    print(f"Created topic {name}.")


def _topic_settings(pairs: list[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign:
            raise _FailedError(f"--config {pair}: expected key=value")
        settings[key.strip()] = value.strip()
    return settings


def _assignments(text: str | None) -> dict[int, list[int]]:
    if text is None:
        return {}
    try:
        assignments = {index: [int(broker) for broker in part.split(":")] for index, part in enumerate(text.split(","))}
    except ValueError:
        raise _FailedError(f"--replica-assignment {text}: expected broker ids as 1:2,2:3") from None
    for index, brokers in assignments.items():
        if len(set(brokers)) != len(brokers):
            twice = ",".join(str(broker) for broker in dict.fromkeys(brokers) if brokers.count(broker) > 1)
            raise _FailedError(f"Partition replica lists may not contain duplicate entries: {twice}")
        if len(brokers) != len(assignments[0]):
            raise _FailedError(f"Partition {index} has different replication factor: {brokers}")
    return assignments


def _names(admin: Admin, arguments: argparse.Namespace) -> list[str]:
    """Return the topics of --topic, all without it. Raises CommandError when there are none."""
    names = sorted(admin.list_topics(internal=not arguments.exclude_internal))
    if arguments.topic is None:
        return names
    try:
        # Kafka's tool treats a comma as "or" and removes blanks and quotes.
        pattern = re.compile(re.sub(r"[\s\"']", "", arguments.topic).replace(",", "|"))
    except re.error as error:
        raise _FailedError(f"--topic {arguments.topic}: not a regular expression: {error}") from None
    found = [name for name in names if pattern.fullmatch(name)]
    if not found and not arguments.if_exists:
        raise _FailedError(f"Topic '{arguments.topic}' does not exist as expected")
    return found


def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    arguments.if_exists = True  # a list without topics is empty, with a pattern as without
    names = _names(admin, arguments)
    if arguments.json:
        print_json(names)
        return
    for name in names:
        print(name)


def _delete(admin: Admin, arguments: argparse.Namespace) -> None:
    names = _names(admin, arguments)
    if names:
        admin.delete_topics(names)


def _alter(admin: Admin, arguments: argparse.Namespace) -> None:
    names = _names(admin, arguments)
    if not names:
        return
    assignments = _assignments(arguments.replica_assignment)
    more = {}
    for topic in admin.describe_topics(names):
        # The assignment includes existing partitions, which are skipped.
        new = [brokers for index, brokers in assignments.items() if index >= len(topic.partitions)]
        more[topic.name] = MorePartitions(arguments.partitions, new if assignments else None)
    admin.create_partitions(more)


class _Described(NamedTuple):
    topic: TopicDescription
    settings: dict[str, ConfigEntry]
    reassignments: dict[int, Reassignment]
    """Reassignments in progress, by partition."""

    def replication_factor(self, partition: PartitionDescription) -> int:
        """Return the replication factor of a partition, without the replicas that a reassignment adds."""
        ongoing = self.reassignments.get(partition.index)
        if ongoing is None or not set(partition.replicas) & {*ongoing.adding, *ongoing.removing}:
            return len(partition.replicas)
        return len(ongoing.replicas) - len(ongoing.adding)

    @property
    def overrides(self) -> list[ConfigEntry]:
        """Return the configs without defaults, in the order of Kafka's tool: that of a Java hash table."""
        ordered = (self.settings[name] for name in in_hash_order(self.settings))
        return [entry for entry in ordered if entry.source != _DEFAULT_CONFIG]

    @property
    def min_in_sync(self) -> int:
        return int(self.settings["min.insync.replicas"].value or 1)


def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    only_partitions = (
        arguments.under_replicated_partitions
        or arguments.unavailable_partitions
        or arguments.under_min_isr_partitions
        or arguments.at_min_isr_partitions
    )
    documents = []
    for described in _described(admin, arguments):
        if arguments.topics_with_overrides and not described.overrides:
            continue
        if arguments.json:
            chosen = [
                partition
                for partition in described.topic.partitions
                if not only_partitions or _is_shown(partition, described, arguments)
            ]
            if chosen or not only_partitions:
                documents.append(_as_json(described, chosen))
            continue
        if not only_partitions:
            print(_topic_line(described))
        if arguments.topics_with_overrides:
            continue
        for partition in described.topic.partitions:
            if not only_partitions or _is_shown(partition, described, arguments):
                print(_partition_line(described, partition))
    if arguments.json:
        print_json(documents)


def _as_json(described: _Described, partitions: list[PartitionDescription]) -> dict[str, object]:
    topic = described.topic
    return {
        "topic": topic.name,
        "topicId": _id_text(topic.topic_id),
        "replicationFactor": described.replication_factor(topic.partitions[0]) if topic.partitions else 0,
        "configs": {entry.name: entry.value for entry in described.overrides},
        "partitions": [_partition_as_json(described, partition) for partition in partitions],
    }


def _partition_as_json(described: _Described, partition: PartitionDescription) -> dict[str, object]:
    ongoing = described.reassignments.get(partition.index)
    return {
        "partition": partition.index,
        "leader": None if partition.leader < 0 else partition.leader,
        "leaderEpoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "elr": list(partition.eligible_leaders or ()),
        "lastKnownElr": list(partition.last_known_eligible_leaders or ()),
        "addingReplicas": [] if ongoing is None else list(ongoing.adding),
        "removingReplicas": [] if ongoing is None else list(ongoing.removing),
    }


def _described(admin: Admin, arguments: argparse.Namespace) -> Iterator[_Described]:
    topic_id = None if arguments.topic_id is None else _parse_id(arguments.topic_id)
    if topic_id in (None, _NO_ID):
        names = _names(admin, arguments)
        size = arguments.partition_size_limit_per_response
        topics = admin.describe_topics(names, partitions_per_response=size) if names else []
    else:
        names = sorted(admin.list_topics(internal=True))
        topics = admin.describe_topics(names) if names else []
        topics = [topic for topic in topics if topic.topic_id == topic_id]
        if not topics and not arguments.if_exists:
            raise _FailedError(f"TopicId '{_id_text(topic_id)}' does not exist as expected")
    ongoing = _reassignments(admin)
    for topic in topics:
        yield _Described(topic, admin.describe_configs(topic.name), ongoing.get(topic.name, {}))


def _reassignments(admin: Admin) -> dict[str, dict[int, Reassignment]]:
    """Return the reassignments in progress, by topic and partition; none where a cluster does not return them."""
    found: dict[str, dict[int, Reassignment]] = {}
    try:
        ongoing = admin.list_partition_reassignments()
    except UnservedApiError:
        return found
    except BrokerError as error:
        if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return found
    for partition, one in ongoing.items():
        found.setdefault(partition.topic, {})[partition.partition] = one
    return found


def _is_shown(partition: PartitionDescription, described: _Described, arguments: argparse.Namespace) -> bool:
    in_sync = len(partition.isr)
    return (
        (arguments.under_replicated_partitions and in_sync < described.replication_factor(partition))
        or (arguments.unavailable_partitions and partition.leader < 0)
        or (arguments.under_min_isr_partitions and in_sync < described.min_in_sync)
        or (arguments.at_min_isr_partitions and in_sync == described.min_in_sync)
    )


def _topic_line(described: _Described) -> str:
    topic = described.topic
    settings = ",".join(f"{entry.name}={entry.value}" for entry in described.overrides)
    replicas = described.replication_factor(topic.partitions[0]) if topic.partitions else 0
    return (
        f"Topic: {topic.name}\tTopicId: {_id_text(topic.topic_id)}\tPartitionCount: {len(topic.partitions)}"
        f"\tReplicationFactor: {replicas}\tConfigs: {settings}"
    )


def _partition_line(described: _Described, partition: PartitionDescription) -> str:
    leader = "none" if partition.leader < 0 else str(partition.leader)
    ongoing = described.reassignments.get(partition.index)
    moving = ""
    if ongoing is not None:
        moving = f"\tAdding Replicas: {_ids(ongoing.adding)}\tRemoving Replicas: {_ids(ongoing.removing)}"
    return (
        f"\tTopic: {described.topic.name}\tPartition: {partition.index}\tLeader: {leader}"
        f"\tReplicas: {_ids(partition.replicas)}\tIsr: {_ids(partition.isr)}{moving}"
        f"\tElr: {_ids(partition.eligible_leaders)}\tLastKnownElr: {_ids(partition.last_known_eligible_leaders)}"
    )


def _ids(brokers: tuple[int, ...] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))


def _parse_id(text: str) -> bytes:
    try:
        return parse_uuid(text)
    except ValueError as error:
        about = f"--topic-id {text}: expected 22 characters as --describe shows them: "
        raise _FailedError(str(error), about) from None


def _id_text(topic_id: bytes) -> str:
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


_ACTIONS = {"create": _create, "list": _list, "describe": _describe, "alter": _alter, "delete": _delete}
