"""`pybroker verifiable-consumer`: reads a topic as a member of a group, and prints what happens to it as JSON.

Owns the options and the events of kafka-verifiable-consumer.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.console_options import read_file
from pybroker.cli.errors import CommandError
from pybroker.cli.interrupts import Interrupts
from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.consumer import Consumer
from pybroker.client.consuming.listener import RebalanceListener
from pybroker.client.errors import ClientError
from pybroker.protocol.kafka_json import json_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from pybroker.client.consuming.fetcher import Record

DESCRIPTION = "Consume a topic in a group, and print rebalances, records and commits as JSON events."

_WAIT_S = 0.5
_PROTOCOLS = ("classic", "consumer")
_RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    servers = parser.add_mutually_exclusive_group(required=True)
    servers.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to")
    servers.add_argument("--broker-list", dest="bootstrap_server", metavar="HOST:PORT", help="deprecated")
    add("--topic", required=True, help="the topic to read")
    add("--group-id", required=True, metavar="ID", help="the group")
    add("--group-instance-id", metavar="ID", help="the name of a static member")
    add("--group-protocol", default="classic", metavar="PROTOCOL", help="classic (default) or consumer")
    add("--group-remote-assignor", metavar="NAME", help="with the protocol consumer: the broker's assignor")
    add("--assignment-strategy", default=_RANGE, metavar="NAME", help="with the protocol classic: an assignor")
    add(
        "--max-messages",
        type=int,
        default=-1,
        metavar="COUNT",
        help="exit after this number of records; -1: no limit (default)",
    )
    add("--session-timeout", type=int, default=30_000, metavar="MS", help="session.timeout.ms (default: 30000)")
    add("--verbose", action="store_true", help="print an event for each record")
    add("--enable-autocommit", action="store_true", help="let the consumer commit automatically")
    add("--reset-policy", default="earliest", metavar="WHERE", help="earliest (default), latest or none")
    configs = parser.add_mutually_exclusive_group()
    configs.add_argument("--command-config", type=Path, metavar="FILE", help="client settings; options override them")
    configs.add_argument("--consumer.config", type=Path, metavar="FILE", dest="consumer_config", help="deprecated")


def run(arguments: argparse.Namespace) -> int:
    """Read until the number of records or a signal ends it. Returns 0, and after a signal its status."""
    if arguments.group_protocol.lower() not in _PROTOCOLS:
        raise CommandError(f"--group-protocol {arguments.group_protocol}: must be {' or '.join(_PROTOCOLS)}")
    events, interrupts = Events(arguments), Interrupts()
    try:
        with interrupts, Consumer(arguments.bootstrap_server, _properties(arguments)) as consumer:
            events.print("startup_complete")
            try:
                consumer.subscribe([arguments.topic], listener=events)
                while not events.is_finished():
                    events.take(consumer, consumer.poll(_WAIT_S))
            except KeyboardInterrupt:
                events.print("shutdown_requested")
    except ClientError as error:
        raise CommandError(str(error)) from None
    events.print("shutdown_complete")
    if not interrupts.arrived:
        # Kafka's tool requests its own shutdown at the end.
        events.print("shutdown_requested")
    return interrupts.status


def _properties(arguments: argparse.Namespace) -> dict[str, object]:
    if arguments.consumer_config is not None:
        print("Option --consumer.config is deprecated. Use --command-config instead.", file=sys.stderr)
    properties: dict[str, object] = {**read_file(arguments.command_config or arguments.consumer_config)}
    properties.pop("bootstrap.servers", None)
    if arguments.group_protocol.lower() == "consumer":
        properties |= {"group.protocol": "consumer"}
        if arguments.group_remote_assignor is not None:
            properties["group.remote.assignor"] = arguments.group_remote_assignor
    else:
        properties["partition.assignment.strategy"] = arguments.assignment_strategy
        properties["session.timeout.ms"] = arguments.session_timeout
    if arguments.group_instance_id is not None:
        properties["group.instance.id"] = arguments.group_instance_id
    return {
        **properties,
        "group.id": arguments.group_id,
        "enable.auto.commit": arguments.enable_autocommit,
        "auto.offset.reset": arguments.reset_policy,
    }


class Events(RebalanceListener):
    """Prints events, each a line, and counts the records."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._most: int = arguments.max_messages
        self._verbose: bool = arguments.verbose
        self._commits = not arguments.enable_autocommit
        self._consumed = 0

    def print(self, name: str, **data: object) -> None:
        """Print an event with the current time."""
        print(json_text({"timestamp": time.time_ns() // 1_000_000, "name": name, **data}), flush=True)

    def is_finished(self) -> bool:
        """Whether the requested number of records has arrived."""
        return 0 <= self._most <= self._consumed

    def on_assigned(self, partitions: Sequence[TopicPartition], /) -> None:
        """Print the assigned partitions."""
        self.print("partitions_assigned", partitions=[_shown(partition) for partition in partitions])

    def on_revoked(self, partitions: Sequence[TopicPartition], /) -> None:
        """Print the revoked partitions."""
        self.print("partitions_revoked", partitions=[_shown(partition) for partition in partitions])

    def take(self, consumer: Consumer, records: list[Record]) -> None:
        """Print the records of one poll, and commit their offsets."""
        if not records:
            return
        by_partition: dict[TopicPartition, list[Record]] = {}
        for record in records:
            by_partition.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        offsets, summaries = {}, list[dict[str, object]]()
        for partition, found in by_partition.items():
            some = found if self._most < 0 else found[: self._most - self._consumed]
            if not some:
                break
            self._consumed += len(some)
            offsets[partition] = OffsetAndMetadata(some[-1].offset + 1)
            count = {"count": len(some), "minOffset": some[0].offset, "maxOffset": some[-1].offset}
            summaries.append({**_shown(partition), **count})
            if self._verbose:
                for record in some:
                    self._print_record(record)
        self.print("records_consumed", count=len(records), partitions=summaries)
        if self._commits:
            self._commit(consumer, offsets)

    def _print_record(self, record: Record) -> None:
        key, value = (None if part is None else part.decode(errors="replace") for part in (record.key, record.value))
        where = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        self.print("record_data", key=key, value=value, **where)

    def _commit(self, consumer: Consumer, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        shown = [{**_shown(partition), "offset": offset.offset} for partition, offset in offsets.items()]
        try:
            consumer.commit(offsets)
        except ClientError as error:
            self.print("offsets_committed", offsets=shown, error=str(error), success=False)
        else:
            self.print("offsets_committed", offsets=shown, success=True)


def _shown(partition: TopicPartition) -> dict[str, object]:
    return {"topic": partition.topic, "partition": partition.partition}
