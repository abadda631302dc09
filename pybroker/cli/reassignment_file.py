"""The file in which `pybroker reassign-partitions` finds replicas and their log directories.

Owns its form, which is that of Kafka's tool, in both directions, and its validation. Must not know the cluster.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pybroker.cli.errors import CommandError
from pybroker.cli.json_files import as_array, as_object, integer_of, integers_of, string_of, strings_of
from pybroker.client.administration.log_dirs import Replica
from pybroker.client.administration.topics import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")

_ANY = "any"
"""Stands for any log directory, which the broker chooses."""
_VERSION = 1


class Plan(NamedTuple):
    """The content of a file."""

    targets: Sequence[tuple[TopicPartition, list[int]]]
    """Replicas by partition, in the order of the file."""
    paths: Mapping[Replica, str]
    """Log directories of the replicas with one in the file."""


def parse_plan(text: str) -> Plan:
    """Parse a file's text. Raises CommandError with the message of Kafka's tool."""
    try:
        content = as_object(json.loads(text))
    except (ValueError, RecursionError):
        raise CommandError("The input string is not a valid JSON") from None
    if "version" in content and integer_of(content, "version") != _VERSION:
        raise CommandError(f"Not supported version field value {content['version']}")
    targets: list[tuple[TopicPartition, list[int]]] = []
    paths: dict[Replica, str] = {}
    for item in as_array(content.get("partitions", [])):
        partition, replicas, directories = _parse(as_object(item))
        targets.append((partition, replicas))
        for broker, path in zip(replicas, directories, strict=True):
            if path != _ANY:
                paths[Replica(partition, broker)] = path
    return Plan(targets, paths)


def _parse(item: dict[str, Any]) -> tuple[TopicPartition, list[int], list[str]]:
    partition = TopicPartition(string_of(item, "topic"), integer_of(item, "partition"))
    replicas = integers_of(item, "replicas")
    directories = strings_of(item, "log_dirs") if "log_dirs" in item else [_ANY] * len(replicas)
    if len(replicas) != len(directories):
        raise CommandError(
            f"Size of replicas list {_java_list(replicas)} is different from size of log dirs list "
            f"{_java_list(directories)} for partition {name_of(partition)}"
        )
    return partition, replicas, directories


def check_executable(plan: Plan) -> None:
    """Reject a plan that no cluster can execute. Raises CommandError with the message of Kafka's tool."""
    if not plan.targets:
        raise CommandError("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in plan.targets):
        raise CommandError("Partition replica list cannot be empty")
    twice = _twice([partition for partition, _ in plan.targets])
    if twice:
        names = ",".join(map(name_of, twice))
        raise CommandError(f"Partition reassignment contains duplicate topic partitions: {names}")
    doubled = [
        f"{name_of(partition)} contains multiple entries for {','.join(map(str, _twice(replicas)))}"
        for partition, replicas in plan.targets
        if _twice(replicas)
    ]
    if doubled:
        raise CommandError(f"Partition replica lists may not contain duplicate entries: {'. '.join(doubled)}")


def build_file(standing: Mapping[TopicPartition, Sequence[int]], paths: Mapping[Replica, str]) -> str:
    """Return the text of a file with these replicas, partitions in the given order."""
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(replicas),
            "log_dirs": [paths.get(Replica(partition, broker), _ANY) for broker in replicas],
        }
        for partition, replicas in standing.items()
    ]
    return json.dumps({"version": _VERSION, "partitions": partitions}, ensure_ascii=False, separators=(",", ":"))


def name_of(partition: TopicPartition) -> str:
    """Return a partition in the notation of Kafka's tools."""
    return f"{partition.topic}-{partition.partition}"


def _twice(some: Sequence[T]) -> list[T]:
    return [one for one in dict.fromkeys(some) if some.count(one) > 1]


def _java_list(some: Sequence[object]) -> str:
    return f"[{', '.join(map(str, some))}]"
