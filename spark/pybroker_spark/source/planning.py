"""Queries partitions and offsets of the cluster, and plans the offset ranges of a read.

Owns the requests at planning, their retries, and the detection of lost records. Runs only in the driver's Python
processes; reads no record.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self, TypeVar

from pybroker.client import (
    EARLIEST,
    LATEST,
    Admin,
    BrokerError,
    ClientError,
    ErrorCode,
    ListedOffset,
    TopicDescription,
    TopicPartition,
)
from pybroker.client.errors import AuthenticationError, UnreachableError
from pybroker.client.settings import AdminSettings
from pybroker_spark.source.errors import DataLossError, OptionError
from pybroker_spark.source.filters import Narrowing
from pybroker_spark.source.leaders import LeaderWatch
from pybroker_spark.source.offsets import AtOffsets, AtTime, AtTimes, Bound, Everywhere, Offsets, in_order, named
from pybroker_spark.source.options import ReadOptions
from pybroker_spark.source.ranges import OffsetRange, split

_log = logging.getLogger(__name__)
_FINAL = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION}
"""Errors that a retry does not change."""

Response = TypeVar("Response")


class Planner:
    """Queries the cluster for a read's partitions and offsets; connects at the first query. Not picklable."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self._admin: Admin | None = None
        self.topic_ids: dict[str, bytes] = {}
        """Topic ids at the last check. A recreated topic has another id. Old brokers return zeros."""
        self._leaders = LeaderWatch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    @property
    def leader_changes(self) -> int:
        """Return the number of leader changes between the calls of `partitions`."""
        return self._leaders.changes

    def partitions(self, *, missing_ok: bool = False) -> list[TopicPartition]:
        """Return the current partitions that the options select.

        With `missing_ok` topics that do not exist are skipped; otherwise raises BrokerError for the first.
        """
        topics = self.options.topics
        if topics.pattern is not None:
            pattern = re.compile(topics.pattern)
            names = [name for name in self._query(lambda admin: admin.list_topics()) if pattern.search(name)]
            missing_ok = True  # a topic may be deleted after it was listed
        else:
            names = sorted({p.topic for p in topics.assigned} or topics.names)
        described = self._describe(names, missing_ok)
        self.topic_ids = {topic.name: topic.topic_id for topic in described}
        if (moved := self._leaders.compare(described)) is not None:
            _log.warning("leaders changed, and reading continues from the new leaders: %s", moved)
        found = [TopicPartition(topic.name, partition.index) for topic in described for partition in topic.partitions]
        if topics.assigned:
            absent = topics.assigned - set(found)
            if absent and not missing_ok:
                raise OptionError(f"assign: {named(absent)} does not exist; there are {named(found)}")
            found = [partition for partition in found if partition in topics.assigned]
        return in_order(found)

    def _describe(self, names: list[str], missing_ok: bool) -> list[TopicDescription]:
        if not names:
            return []
        try:
            return self._query(lambda admin: admin.describe_topics(names))
        except BrokerError as error:
            if not missing_ok or error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            there = set(self._query(lambda admin: admin.list_topics(internal=True)))
            left = [name for name in names if name in there]
            if left == names:
                raise
        return self._describe(left, missing_ok)

    def list_offsets(self, wanted: Offsets) -> dict[TopicPartition, ListedOffset]:
        """Return the first offset at or after a timestamp (or `EARLIEST`, `LATEST`) of each partition."""
        if not wanted:
            return {}
        committed = self.options.read_committed
        return self._query(lambda admin: admin.list_offsets(wanted, read_committed=committed))

    def all_at(self, partitions: Iterable[TopicPartition], mark: int) -> Offsets:
        """Return the earliest or latest offset of each partition."""
        listed = self.list_offsets(dict.fromkeys(partitions, mark))
        return {partition: response.offset for partition, response in listed.items()}

    def resolve(self, bound: Bound, partitions: list[TopicPartition], *, starting: bool) -> Offsets:
        """Return the offsets of the start (or end) of a read. Raises OptionError."""
        side = "starting" if starting else "ending"
        match bound:
            case Everywhere(mark=mark):
                return self.all_at(partitions, mark)
            case AtOffsets(offsets=offsets):
                _require_all(f"{side}Offsets", offsets, partitions, "; -1 stands for latest, -2 for earliest")
                requested = self.list_offsets({p: mark for p, mark in offsets.items() if mark in (EARLIEST, LATEST)})
                return {p: requested[p].offset if p in requested else offset for p, offset in offsets.items()}
            case AtTimes(times_ms=times):
                _require_all(f"{side}OffsetsByTimestamp", times, partitions, "")
            case AtTime(time_ms=time_ms):
                times = dict.fromkeys(partitions, time_ms)
        listed = self.list_offsets(times)
        late = [partition for partition, response in listed.items() if response.offset < 0]
        if late and starting and not self.options.latest_if_no_match:
            raise OptionError(
                f"{named(late[:1])}: no record is at or after the {side} time {times[late[0]]} ms; must be earlier, or "
                "set startingOffsetsByTimestampStrategy=latest"
            )
        return {p: response.offset for p, response in listed.items() if response.offset >= 0} | self.all_at(
            late, LATEST
        )

    def batch(self, narrowing: Narrowing | None = None) -> list[OffsetRange]:
        """Return the ranges for the tasks of a batch, limited by `narrowing`.

        Raises OptionError, DataLossError and the client's errors.
        """
        options = self.options
        partitions = self.partitions()
        # In this order, a concurrent deletion or write is not mistaken for a loss.
        first = self.all_at(partitions, EARLIEST)
        start = self.resolve(options.starting or Everywhere(EARLIEST), partitions, starting=True)
        end = self.resolve(options.ending or Everywhere(LATEST), partitions, starting=False)
        last = self.all_at(partitions, LATEST)
        ranges = []
        for partition in partitions:
            begin, until = start[partition], end[partition]
            if begin > until:
                raise OptionError(f"{named([partition])}: start {begin} is after end {until}; must not be")
            held = OffsetRange(partition, max(begin, first[partition]), min(until, last[partition]))
            wanted = OffsetRange(partition, begin, until)
            if wanted.size > 0 and held != wanted:
                self.lose(f"{wanted} cannot be read: the log holds {first[partition]} to {last[partition]}")
            ranges.append(held)
        if narrowing is not None:
            ranges = self._narrow(ranges, narrowing)
        return split(ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition)

    def _narrow(self, ranges: list[OffsetRange], narrowing: Narrowing) -> list[OffsetRange]:
        wanted = [one for one in ranges if one.size > 0 and narrowing.wants(one.partition)]
        since: dict[TopicPartition, int] = {}
        if narrowing.since_ms is not None:
            listed = self.list_offsets({one.partition: max(narrowing.since_ms, 0) for one in wanted})
            ends = {one.partition: one.end for one in wanted}
            since = {p: response.offset if response.offset >= 0 else ends[p] for p, response in listed.items()}
        return [narrowing.clip(one, since.get(one.partition)) for one in wanted]

    def initial(self) -> Offsets:
        """Return the start of a stream."""
        return self.resolve(self.options.starting or Everywhere(LATEST), self.partitions(), starting=True)

    def lose(self, what: str) -> None:
        """Handle lost records: raise DataLossError or log them, as `failOnDataLoss` defines."""
        if self.options.fail_on_data_loss:
            raise DataLossError(f"{what}; with failOnDataLoss=false the remaining records are read")
        _log.warning("%s; failOnDataLoss=false: the remaining records are read", what)

    def _query(self, question: Callable[[Admin], Response]) -> Response:
        """Query the cluster, with at most `fetchOffset.numRetries` attempts, on new connections each time.

        The client itself retries for default.api.timeout.ms while no broker responds. After that, UnreachableError
        ends the read.
        """
        attempts = self.options.fetch_attempts
        for attempt in range(1, attempts + 1):
            try:
                if self._admin is None:
                    self._admin = Admin(self.options.bootstrap_servers, AdminSettings.acting(self.options.properties))
                return question(self._admin)
            except ClientError as error:
                final = isinstance(error, BrokerError) and error.code in _FINAL
                if attempt == attempts or final or isinstance(error, (UnreachableError, AuthenticationError)):
                    raise
                self.close()
                time.sleep(self.options.fetch_retry_s)
        raise AssertionError("fetchOffset.numRetries is at least 1")


def _require_all(option: str, given: Offsets, partitions: list[TopicPartition], hint: str) -> None:
    if given.keys() != set(partitions):
        raise OptionError(f"{option} names {named(given)}; must name every partition: {named(partitions)}{hint}")
