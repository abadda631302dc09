"""What `pybroker reassign-partitions --generate` proposes: topics spread anew over a list of brokers.

Owns the form of the topics file, its errors, which have the messages of Kafka's tool, and the output. The algorithm is
the controller's own: a proposal places replicas like those of a new topic.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.cli.json_files import as_array, as_object, integer_of, string_of
from pybroker.cli.reassignment_file import build_file
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import BrokerError
from pybroker.controller.cluster.placement import place
from pybroker.metadata.image import BrokerRegistration
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.client.administration.admin import Admin

_VERSION = 1


def generate(admin: Admin, topics_text: str, brokers_text: str, *, rack_aware: bool) -> None:
    """Print the current and the proposed replicas. Raises CommandError."""
    wanted = parse_broker_list(brokers_text)
    topics = parse_topics(topics_text)
    standing: dict[TopicPartition, tuple[int, ...]] = {}
    for name in sorted(topics):
        standing.update(replicas_of(admin, name))
    racks = {
        broker.node_id: broker.rack if rack_aware else None
        for broker in admin.describe_cluster().brokers
        if broker.node_id in wanted
    }
    proposed = propose(standing, racks, random.randrange(1 << 30))
    print(f"Current partition replica assignment\n{build_file(standing, {})}\n")
    print(f"Proposed partition reassignment configuration\n{build_file(proposed, {})}")


def parse_broker_list(text: str) -> list[int]:
    """Parse `--broker-list`. Raises CommandError."""
    try:
        brokers = [int(broker) for broker in text.split(",")]
    except ValueError:
        raise CommandError(f"--broker-list {text}: expected broker ids, separated by commas") from None
    twice = [broker for broker in dict.fromkeys(brokers) if brokers.count(broker) > 1]
    if twice:
        raise CommandError(f"Broker list contains duplicate entries: {twice}")
    return brokers


def parse_topics(text: str) -> list[str]:
    """Parse the topics in a file. Raises CommandError with the message of Kafka's tool."""
    try:
        content = as_object(json.loads(text))
    except (ValueError, RecursionError):
        raise CommandError("The input string is not a valid JSON") from None
    if "version" in content and integer_of(content, "version") != _VERSION:
        raise CommandError(f"Not supported version field value {content['version']}")
    topics = [string_of(as_object(item), "topic") for item in as_array(content.get("topics", []))]
    twice = [topic for topic in dict.fromkeys(topics) if topics.count(topic) > 1]
    if twice:
        raise CommandError(f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]")
    return topics


def replicas_of(admin: Admin, name: str) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the replicas of a topic's partitions. Raises CommandError for an unknown topic."""
    try:
        (topic,) = admin.describe_topics([name])
    except BrokerError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise CommandError(f"Topic {name} not found.") from None
    return {TopicPartition(name, part.index): part.replicas for part in topic.partitions}


def propose(
    standing: Mapping[TopicPartition, Sequence[int]], racks: Mapping[int, str | None], seed: int
) -> dict[TopicPartition, tuple[int, ...]]:
    """Assign replicas to brokers, for each topic with the replication factor of its first partition.

    Raises CommandError.
    """
    rackless = [broker for broker, rack in racks.items() if rack is None]
    if rackless and len(rackless) != len(racks):
        raise CommandError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    brokers = {broker: _usable(broker, rack) for broker, rack in sorted(racks.items())}
    by_topic: dict[str, list[TopicPartition]] = {}
    for partition in standing:
        by_topic.setdefault(partition.topic, []).append(partition)
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for number, partitions in enumerate(by_topic.values()):
        factor = len(standing[partitions[0]])
        if factor > len(brokers):
            raise CommandError(f"Replication factor: {factor} larger than available brokers: {len(brokers)}.")
        proposed.update(zip(partitions, place(brokers, len(partitions), factor, seed + number), strict=True))
    return proposed


def _usable(broker: int, rack: str | None) -> BrokerRegistration:
    return BrokerRegistration(
        id=broker, incarnation_id=b"", epoch=0, listeners={}, security_protocols={}, rack=rack, fenced=False
    )
