"""The options of reads and writes: the names, defaults and rules of Spark's Kafka connector.

Owns every default and every check that needs no cluster and no schema; each error has the option, the value and the
expected value. Names are case-insensitive, as everywhere in Spark. The client interprets `kafka.*` options.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pybroker.client import EARLIEST, LATEST, TopicPartition
from pybroker.client.errors import SettingError
from pybroker.client.settings import ConnectionSettings, FetcherSettings, ProducerSettings, shown
from pybroker_spark.source.errors import OptionError
from pybroker_spark.source.offsets import (
    AtOffsets,
    AtTime,
    AtTimes,
    Bound,
    Everywhere,
    named,
    parse_assignment,
    parse_offsets,
    parse_times,
)

_log = logging.getLogger(__name__)

_STRATEGIES: Final = ("assign", "subscribe", "subscribePattern")
_READ: Final = (
    *_STRATEGIES,
    "columns",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "includeHeaders",
    "kafkaConsumer.pollTimeoutMs",
    "maxBytesPerTrigger",
    "maxOffsetsPerTrigger",
    "maxRecordsPerPartition",
    "maxTriggerDelay",
    "minOffsetsPerTrigger",
    "minPartitions",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "topic",  # of writes; a job may pass the same options to both sides
)
_WRITE: Final = ("exactly.once", "topic")
LEDGER, TRANSACTIONS = "ledger", "transactions"
"""The exactly-once method of streaming writes (`docs/adr/0072-a-streaming-write-by-transactions.md`)."""
_OF_SPARK: Final = ("path", "checkpointLocation", "queryName", "mergeSchema")
"""Options that Spark reads itself and passes on to the format."""
_NEAR: Final = 0.5
"""Minimum similarity, from 0 to 1, of an unknown name and a suggested one."""
_TOKEN: Final = "delegation.token"
_OF_SPARK_BEGIN: Final = ("asyncprogresstracking", "_")
_ENDINGS: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_OF_STREAMS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger", "maxTriggerDelay")

_KAFKA: Final = "kafka."
_SERVERS: Final = "bootstrap.servers"
_REFUSED_KAFKA: Final = {
    "auto.offset.reset": "set startingOffsets to earliest, latest or offsets; a stream that is restarted goes on where"
    " it was",
    "key.deserializer": "keys come as binary: cast or decode the column",
    "value.deserializer": "values come as binary: cast or decode the column",
    "enable.auto.commit": "Spark's checkpoint says what was read; leave it out",
    "interceptor.classes": "they could change what is read; leave it out",
}
_REFUSED_KAFKA_OF_WRITES: Final = {
    "key.serializer": "keys are written as they are: cast the column to binary or string",
    "value.serializer": "values are written as they are: cast the column to binary or string",
}
_DELAY = re.compile(r"(\d+)\s*(us|ms|s|m|min|h|d)?", re.IGNORECASE)
_DELAY_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Topics:
    """The partitions to read: exactly one of the three is set."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    """Topics whose name contains a match of this expression."""
    assigned: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of a read, in batch or in a stream. A plain value, which is pickled for the workers."""

    topics: Topics
    starting: Bound | None = None
    """None: earliest in batch, latest in a stream."""
    ending: Bound | None = None
    """None: latest. Batch only."""
    latest_if_no_match: bool = False
    """Whether a starting timestamp after the last record means latest; otherwise it is an error."""
    fail_on_data_loss: bool = True
    include_headers: bool = False
    columns: tuple[str, ...] | None = None
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    max_trigger_delay_s: float = 900.0
    poll_timeout_s: float = 120.0
    fetch_attempts: int = 3
    fetch_retry_s: float = 1.0
    bootstrap_servers: str = ""
    properties: Mapping[str, str] = field(repr=False)
    """The values of `kafka.*` options, without `bootstrap.servers`."""
    given: frozenset[str] = frozenset()
    """The given names, in their original spelling."""

    @property
    def read_committed(self) -> bool:
        """Whether records of open and aborted transactions are omitted."""
        return self.properties.get("isolation.level") == "read_committed"

    def check_batch(self) -> None:
        """Reject options that are invalid for a batch. Raises OptionError."""
        _refuse_mark("startingOffsets", self.starting, LATEST, "latest", "earliest or an offset")
        _refuse_mark("endingOffsets", self.ending, EARLIEST, "earliest", "latest or an offset")
        _check_pair(self.starting, self.ending)
        for name in _OF_STREAMS:
            if name in self.given:
                _log.warning("option %s has no effect in a batch", name)

    def check_stream(self) -> None:
        """Reject options that are invalid for a stream. Raises OptionError."""
        for name in _ENDINGS:
            if name in self.given:
                raise OptionError(f"{name}: a stream has no end; leave it out, or read a batch with spark.read")
        low, high = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if low is not None and high is not None and low > high:
            raise OptionError(f"minOffsetsPerTrigger={low} is above maxOffsetsPerTrigger={high}: must be at most that")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of a write, in batch or in a stream."""

    topic: str | None
    """The topic of all rows; None: each row's `topic` column defines it."""
    bootstrap_servers: str
    properties: Mapping[str, str] = field(repr=False)
    exactly_once: str = LEDGER
    """For streams; a batch write is at least once."""


def parse_read(options: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a read. Raises OptionError for the first invalid one."""
    given = _Given(options)
    given.refuse_unknown(_READ)
    topics = _topics(given)
    servers, properties = _kafka(given, _REFUSED_KAFKA, "consumer")
    _check_settings(FetcherSettings, servers, properties)
    if "group.id" in properties:
        _log.warning("option kafka.group.id=%s has no effect: pybroker reads without a group", properties["group.id"])
    columns = given.text("columns")
    strategy = given.text("startingOffsetsByTimestampStrategy") or "error"
    if strategy.lower() not in ("error", "latest"):
        raise OptionError(f"startingOffsetsByTimestampStrategy={strategy}: must be error or latest")
    return ReadOptions(
        topics=topics,
        starting=_bound(given, "starting"),
        ending=_bound(given, "ending"),
        latest_if_no_match=strategy.lower() == "latest",
        fail_on_data_loss=given.flag("failOnDataLoss", True),
        include_headers=given.flag("includeHeaders", False),
        columns=tuple(name.strip() for name in columns.split(",") if name.strip()) if columns is not None else None,
        min_partitions=given.positive("minPartitions"),
        max_records_per_partition=given.positive("maxRecordsPerPartition"),
        max_offsets_per_trigger=given.positive("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=given.positive("minOffsetsPerTrigger"),
        max_bytes_per_trigger=given.positive("maxBytesPerTrigger"),
        max_trigger_delay_s=_delay_s(given),
        poll_timeout_s=(given.positive("kafkaConsumer.pollTimeoutMs") or 120_000) / 1000,
        fetch_attempts=given.positive("fetchOffset.numRetries") or 3,
        fetch_retry_s=(given.number("fetchOffset.retryIntervalMs", at_least=0, default=1000)) / 1000,
        bootstrap_servers=servers,
        properties=properties,
        given=frozenset(name for name in _READ if given.text(name) is not None),
    )


def parse_write(options: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a write. Raises OptionError for the first invalid one."""
    given = _Given(options)
    given.refuse_unknown(_WRITE)
    servers, properties = _kafka(given, _REFUSED_KAFKA_OF_WRITES, "producer")
    _check_settings(ProducerSettings, servers, properties)
    topic = given.text("topic")
    if topic == "":
        raise OptionError("topic=: must name a topic; leave it out to write where a topic column says")
    way = (given.text("exactly.once") or LEDGER).lower()
    if way not in (LEDGER, TRANSACTIONS):
        raise OptionError(f"exactly.once={way}: must be {LEDGER} or {TRANSACTIONS}")
    return WriteOptions(topic=topic, bootstrap_servers=servers, properties=properties, exactly_once=way)


class _Given:
    """Options by case-insensitive name."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.values = {name.lower(): value for name, value in options.items()}

    def text(self, name: str) -> str | None:
        value = self.values.get(name.lower())
        return None if value is None else value.strip()

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise OptionError(f"{name}={text}: must be true or false")
        return text.lower() == "true"

    def positive(self, name: str) -> int | None:
        return None if self.text(name) is None else self.number(name, at_least=1, default=0)

    def number(self, name: str, *, at_least: int, default: int) -> int:
        text = self.text(name)
        if text is None:
            return default
        if not re.fullmatch(r"[+-]?\d+", text) or int(text) < at_least:
            raise OptionError(f"{name}={text}: must be a whole number of at least {at_least}")
        return int(text)

    def refuse_unknown(self, known: tuple[str, ...]) -> None:
        """Reject an unknown option, with the nearest known one of this side, or all of them.

        An option of the other side is accepted: a job may pass the same options to both.
        """
        read = {name.lower() for name in (*_READ, *_WRITE, *_OF_SPARK)}
        by_lower = {name.lower(): name for name in (*known, f"{_KAFKA}{_SERVERS}")}
        for name in self.values:
            if name.endswith(_TOKEN):
                raise OptionError(f"{name}: no option makes a token; pybroker_spark.delegated gives options with one")
            if name not in read and not name.startswith((_KAFKA, *_OF_SPARK_BEGIN)):
                near = difflib.get_close_matches(name, by_lower, n=1, cutoff=_NEAR)
                advice = f"did you mean {by_lower[near[0]]}?" if near else f"there are {', '.join(by_lower.values())}"
                raise OptionError(f"{name}: there is no such option; {advice}")


def _topics(given: _Given) -> Topics:
    named_ones = [name for name in _STRATEGIES if given.text(name) is not None]
    if len(named_ones) != 1:
        found = f"{' and '.join(named_ones)} are" if named_ones else "none is"
        raise OptionError(f"exactly one of {', '.join(_STRATEGIES)} says what is read, and {found} given")
    option = named_ones[0]
    text = given.text(option) or ""
    if option == "assign":
        return Topics(assigned=parse_assignment(option, text))
    if option == "subscribe":
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        if not names:
            raise OptionError(f"subscribe={text}: must name at least one topic, or several with commas between")
        return Topics(names=names)
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError(f"subscribePattern={text}: must be a regular expression ({error})") from None
    if not text:
        raise OptionError("subscribePattern=: must be a regular expression that topics' names are searched for")
    return Topics(pattern=text)


def _bound(given: _Given, side: str) -> Bound | None:
    """Parse the start or end of a read: one timestamp overrides timestamps by partition, and both override offsets."""
    time = given.text(f"{side}Timestamp")
    if time is not None:
        if not re.fullmatch(r"\d+", time):
            raise OptionError(f"{side}Timestamp={time}: must be milliseconds since 1970")
        return AtTime(int(time))
    option = f"{side}OffsetsByTimestamp"
    times = given.text(option)
    if times is not None:
        return AtTimes(parse_times(option, times))
    option = f"{side}Offsets"
    text = given.text(option)
    if text is None:
        return None
    mark = {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())
    return AtOffsets(parse_offsets(option, text)) if mark is None else Everywhere(mark)


def _kafka(given: _Given, refused: Mapping[str, str], side: str) -> tuple[str, dict[str, str]]:
    """Return the servers, and the other values of `kafka.*` options."""
    properties = {
        name.removeprefix(_KAFKA): value.strip() for name, value in given.values.items() if name.startswith(_KAFKA)
    }
    for name, advice in refused.items():
        if name in properties:
            raise OptionError(f"kafka.{name}={shown(name, properties[name])}: not supported; {advice}")
    servers = properties.pop(_SERVERS, "")
    if not servers:
        raise OptionError(f"kafka.{_SERVERS} is not given: the {side} needs at least one host:port")
    return servers, properties


def _check_settings(settings: type[ConnectionSettings], servers: str, properties: Mapping[str, str]) -> None:
    """Reject before any task runs what the tasks' clients would reject. Raises OptionError."""
    try:
        settings.from_properties({**properties, _SERVERS: servers})
    except SettingError as error:
        raise OptionError(f"{_KAFKA}{error}") from None


def warn_of_unused(settings: type[ConnectionSettings], properties: Mapping[str, str]) -> None:
    """Log each `kafka.*` option that the client does not have, as Kafka's clients do."""
    for key in settings.without_effect(properties):
        if key != "group.id":
            _log.warning("option %s%s=%s has no effect on this client", _KAFKA, key, shown(key, properties[key]))


def _delay_s(given: _Given) -> float:
    text = given.text("maxTriggerDelay")
    if text is None:
        return 900.0
    found = _DELAY.fullmatch(text)
    if found is None:
        raise OptionError(f"maxTriggerDelay={text}: must be a time like 15m, 30s or 500ms")
    return int(found[1]) * _DELAY_UNITS[(found[2] or "ms").lower()]


def _refuse_mark(option: str, bound: Bound | None, mark: int, word: str, right: str) -> None:
    if bound == Everywhere(mark):
        raise OptionError(f"{option}={word}: a batch cannot have that; must be {right}")
    if isinstance(bound, AtOffsets):
        partitions = [partition for partition, offset in bound.offsets.items() if offset == mark]
        if partitions:
            raise OptionError(f"{option}: {named(partitions)} is {mark} ({word}); in a batch it must be {right}")


def _check_pair(starting: Bound | None, ending: Bound | None) -> None:
    """Check that two explicit bounds have the same partitions, with the start not after the end."""
    match starting, ending:
        case AtOffsets(offsets=first), AtOffsets(offsets=last):
            options = "startingOffsets", "endingOffsets"
        case AtTimes(times_ms=first), AtTimes(times_ms=last):
            options = "startingOffsetsByTimestamp", "endingOffsetsByTimestamp"
        case _:
            return
    if first.keys() != last.keys():
        raise OptionError(
            f"{options[0]} names {named(first)}, {options[1]} {named(last)}: must name the same partitions"
        )
    for partition, start in first.items():
        if 0 <= last[partition] < start:
            raise OptionError(
                f"{named([partition])}: {options[0]} is {start}, {options[1]} {last[partition]}: must not be before it"
            )
