"""Which partitions the console consumer reads: a group's share, one by its number, or all of its topics.

Owns how new partitions and topics are found while it runs. Must not know how records are shown.
"""

from __future__ import annotations

import re
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.client.admin import Admin
from pybroker.client.consumer import Consumer
from pybroker.client.errors import BrokerError
from pybroker.client.settings import AdminSettings, ConsumerSettings
from pybroker.client.topics import EARLIEST, LATEST, TopicPartition
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from pybroker.client.fetcher import Record
    from pybroker.client.text import FormattedRecords, RecordFormat

_LOOK_AGAIN_S = 1.0
"""Between two looks for a topic that is not there yet."""


class Reading:
    """What is read, and the topics that are followed."""

    def __init__(self, consumer: Consumer, follows: Follows | None = None) -> None:
        self._consumer, self._follows = consumer, follows

    def format(self, layout: RecordFormat, wait_s: float, max_records: int, max_bytes: int) -> FormattedRecords | None:
        """The next records as text; None when none came in time."""
        self._look()
        return self._consumer.format(layout, wait_s, max_records=max_records, max_bytes=max_bytes)

    def poll(self, wait_s: float, max_records: int) -> list[Record]:
        """The next records."""
        self._look()
        return self._consumer.poll(wait_s, max_records)

    def _look(self) -> None:
        if self._follows is not None and (partitions := self._follows.look()) is not None:
            self._consumer.assign(partitions)


class Follows:
    """All partitions of a topic, or of the topics that match, as the cluster knows them now and later."""

    def __init__(self, admin: Admin, arguments: argparse.Namespace, *, internal: bool, interval_s: float) -> None:
        self._admin, self._topic, self._internal, self._interval_s = admin, arguments.topic, internal, interval_s
        self._include = None if arguments.include is None else _pattern(arguments.include)
        self._found: list[TopicPartition] = []
        self._warned = False
        self._look_at = 0.0

    def look(self) -> list[TopicPartition] | None:
        """The partitions, where they are others than at the last look."""
        if time.monotonic() < self._look_at:
            return None
        found = self._find()
        self._look_at = time.monotonic() + (self._interval_s if found else _LOOK_AGAIN_S)
        if not found and self._topic is not None:
            # Asked for by its consumer, a topic is created where the broker creates topics.
            found = [TopicPartition(self._topic, 0)]
        changed, self._found = found != self._found, found
        return found if changed else None

    def _find(self) -> list[TopicPartition]:
        names = [self._topic]
        if self._include is not None:
            names = [name for name in self._admin.list_topics(internal=self._internal) if self._include.fullmatch(name)]
        try:
            topics = self._admin.describe_topics(names) if names else []
        except BrokerError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            if self._topic is not None and not self._warned:
                print(f"WARN topic {self._topic} does not exist; waiting for it", file=sys.stderr)
                self._warned = True
            return [] if self._include is None else self._found  # a topic that was deleted between the two questions
        return [TopicPartition(topic.name, partition.index) for topic in topics for partition in topic.partitions]


@contextmanager
def open_reading(arguments: argparse.Namespace, properties: Mapping[str, str]) -> Iterator[Reading]:
    """Begin to read what the options name; raises CommandError and ClientError."""
    with Consumer(arguments.bootstrap_server, properties) as consumer:
        if arguments.partition is not None:
            _read_partition(consumer, arguments)
            yield Reading(consumer)
        elif "group.id" in properties:
            pattern = None if arguments.include is None else _pattern(arguments.include)
            topics = [] if arguments.topic is None else [arguments.topic]
            consumer.subscribe(topics, pattern=None if pattern is None else re.compile(rf"(?:{pattern.pattern})\Z"))
            yield Reading(consumer)
        else:
            settings = ConsumerSettings.of_client(arguments.bootstrap_server, properties)
            with Admin(arguments.bootstrap_server, AdminSettings.acting(properties)) as admin:
                interval_s = settings.metadata_max_age_ms / 1000
                internal = not settings.exclude_internal_topics
                yield Reading(consumer, Follows(admin, arguments, internal=internal, interval_s=interval_s))


def _read_partition(consumer: Consumer, arguments: argparse.Namespace) -> None:
    start = _parse_offset(arguments)
    count = len(consumer.partitions_for(arguments.topic).partitions)
    if not 0 <= arguments.partition < count:
        raise CommandError(
            f"--partition {arguments.partition}: topic {arguments.topic} has partitions 0 to {count - 1}"
        )
    partition = TopicPartition(arguments.topic, arguments.partition)
    consumer.assign([partition])
    consumer.seek(partition, start)


def _parse_offset(arguments: argparse.Namespace) -> int:
    text = arguments.offset
    if text is None:
        return EARLIEST if arguments.from_beginning else LATEST
    if text.lower() in ("earliest", "latest"):
        return EARLIEST if text.lower() == "earliest" else LATEST
    if not re.fullmatch(r"\+?\d{1,19}", text) or int(text) >= 2**63:
        raise CommandError(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return int(text)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise CommandError(f"--include {text}: must be a regular expression ({error})") from None
