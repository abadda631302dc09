"""Which partitions the console consumer reads: a group's share, one by its number, or all of its topics.

Owns the detection of new partitions and topics, and the offsets to commit: the consumer commits the offsets of returned
records, so an end before they are written resets the positions. Must not know how records are formatted.
"""

from __future__ import annotations

import re
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import EARLIEST, LATEST, TopicPartition
from pybroker.client.consuming.consumer import Consumer
from pybroker.client.consuming.listener import RebalanceListener
from pybroker.client.errors import BrokerError, ClientError
from pybroker.client.settings import AdminSettings, ConsumerSettings
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pybroker.client.consuming.fetcher import Record
    from pybroker.client.text import FormattedRecords, RecordFormat

_RETRY_INTERVAL_S = 1.0
"""Seconds between two checks for a missing topic."""
_COMPLETE_S = 0.5
"""Seconds between two queries of the written records' positions."""
_LEAST_TIMEOUT_MS = 1000
"""Minimum timeout of calls under any --timeout-ms."""


class Reading:
    """The consumer of the records, and its topics."""

    def __init__(self, consumer: Consumer, follows: Follows | None = None, written: Written | None = None) -> None:
        self._consumer, self._follows, self._written = consumer, follows, written

    def format(self, layout: RecordFormat, wait_s: float, max_records: int, max_bytes: int) -> FormattedRecords | None:
        """Return the next records as text; None where none arrive in time."""
        self._poll_partitions()
        formatted = self._consumer.format(layout, wait_s, max_records=max_records, max_bytes=max_bytes)
        if formatted is None and self._written is not None:
            self._written.complete(self._consumer)
        return formatted

    def poll(self, wait_s: float, max_records: int) -> list[Record]:
        """Return the next records."""
        self._poll_partitions()
        records = self._consumer.poll(wait_s, max_records)
        if not records and self._written is not None:
            self._written.complete(self._consumer)
        return records

    def wrote(self, topic: str, partition: int, records: int) -> None:
        """Record that so many records of a partition are written: all that were returned."""
        if self._written is not None:
            self._written.add(self._consumer, TopicPartition(topic, partition), records)

    def return_records(self, records: Iterable[Record]) -> None:
        """Reset the positions to these records, which were returned but not written."""
        first: dict[TopicPartition, int] = {}
        for record in records:
            first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        for partition, offset in first.items():
            self._consumer.seek(partition, offset)

    def return_unwritten(self) -> None:
        """Reset the positions to those of the written records, so that no others are committed."""
        if self._written is not None:
            self._written.set_back(self._consumer)

    def _poll_partitions(self) -> None:
        if self._follows is not None and (partitions := self._follows.poll()) is not None:
            self._consumer.assign(partitions)


class Written(RebalanceListener):
    """Up to which offsets the records of a group's partitions are written.

    A query of the consumer's position costs as much as formatting thousands of records. So positions are queried
    from time to time, and records are counted in between. Each takes at least one offset, so the result is never too
    high.
    """

    def __init__(self) -> None:
        self._offsets: dict[TopicPartition, int] = {}
        self._more: dict[TopicPartition, int] = {}
        """Records that were written since the last query of the position."""
        self._complete_at = 0.0

    def on_revoked(self, partitions: Sequence[TopicPartition], /) -> None:
        """Remove partitions that another member may continue."""
        for partition in partitions:
            self._offsets.pop(partition, None)
            self._more.pop(partition, None)

    def add(self, consumer: Consumer, partition: TopicPartition, records: int) -> None:
        """Record that so many records are written, which are all that were returned."""
        self._more[partition] = self._more.get(partition, 0) + records
        if partition not in self._offsets or time.monotonic() >= self._complete_at:
            self.complete(consumer)

    def complete(self, consumer: Consumer) -> None:
        """Query the positions of partitions with counted records; all returned records must be written."""
        for partition in list(self._more):
            try:
                self._offsets[partition] = consumer.position(partition)
            except (ClientError, TimeoutError):
                continue  # the count continues, and the consumer raises the same error at the next read
            del self._more[partition]
        self._complete_at = time.monotonic() + _COMPLETE_S

    def set_back(self, consumer: Consumer) -> None:
        """Reset the consumer's positions to the known ones, and prevent commits of other partitions."""
        for partition in consumer.assignment():
            to: int | OffsetAndMetadata
            if partition in self._offsets:
                to = self._offsets[partition] + self._more.get(partition, 0)
            else:
                # A position with a leader epoch is validated before it is used or committed, which never happens here.
                to = OffsetAndMetadata(0, leader_epoch=0)
            consumer.seek(partition, to)


class Follows:
    """The current and future partitions of a topic, or of the topics that match a pattern."""

    def __init__(self, admin: Admin, arguments: argparse.Namespace, *, internal: bool, interval_s: float) -> None:
        self._admin, self._topic, self._internal, self._interval_s = admin, arguments.topic, internal, interval_s
        self._include = None if arguments.include is None else _pattern(arguments.include)
        self._found: list[TopicPartition] = []
        self._warned = False
        self._due_at = 0.0

    def poll(self) -> list[TopicPartition] | None:
        """Return the partitions if they have changed since the last poll, else None."""
        if time.monotonic() < self._due_at:
            return None
        found = self._find()
        self._due_at = time.monotonic() + (self._interval_s if found else _RETRY_INTERVAL_S)
        if not found and self._topic is not None:
            # The consumer's metadata request creates the topic where the broker creates topics.
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
            return [] if self._include is None else self._found  # a topic was deleted between the two requests
        return [TopicPartition(topic.name, partition.index) for topic in topics for partition in topic.partitions]


@contextmanager
def open_reading(arguments: argparse.Namespace, properties: Mapping[str, str]) -> Iterator[Reading]:
    """Start to read as the options define. Raises CommandError and ClientError."""
    properties = _within_timeout(arguments, properties)
    settings = _settings(arguments, properties)
    with Consumer(arguments.bootstrap_server, properties) as consumer:
        if arguments.partition is not None:
            _read_partition(consumer, arguments)
            yield Reading(consumer)
        elif "group.id" in properties:
            pattern = None if arguments.include is None else _pattern(arguments.include)
            topics = [] if arguments.topic is None else [arguments.topic]
            compiled = None if pattern is None else re.compile(rf"(?:{pattern.pattern})\Z")
            written = Written() if settings.commits_itself else None
            consumer.subscribe(topics, pattern=compiled, listener=written)
            yield Reading(consumer, written=written)
        else:
            with Admin(arguments.bootstrap_server, _admin_properties(settings, properties)) as admin:
                interval_s = settings.metadata_max_age_ms / 1000
                internal = not settings.exclude_internal_topics
                yield Reading(consumer, Follows(admin, arguments, internal=internal, interval_s=interval_s))


def _settings(arguments: argparse.Namespace, properties: Mapping[str, str]) -> ConsumerSettings:
    return ConsumerSettings.from_properties({**properties, "bootstrap.servers": arguments.bootstrap_server})


def _within_timeout(arguments: argparse.Namespace, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with a default.api.timeout.ms that limits calls to about --timeout-ms."""
    if arguments.timeout_ms is None:
        return dict(properties)
    given = _settings(arguments, properties).default_api_timeout_ms
    return {**properties, "default.api.timeout.ms": str(min(given, max(_LEAST_TIMEOUT_MS, arguments.timeout_ms)))}


def _admin_properties(settings: ConsumerSettings, properties: Mapping[str, str]) -> dict[str, str]:
    """Return a consumer's properties as an admin's, where request.timeout.ms must not exceed default.api.timeout.ms."""
    longest = min(settings.request_timeout_ms, settings.default_api_timeout_ms)
    return {**AdminSettings.acting(properties), "request.timeout.ms": str(longest)}


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
