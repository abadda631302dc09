"""kafka-consumer-perf-test on the native fetcher: Kafka's options and output, and `--json`.

With `--group` the group assigns the partitions, by `pybroker.client.Consumer`, and offsets are committed. Without it
all partitions are assigned, and `rebalance.time.ms` is the time until they were known and assigned. The engine reads
every record; Python gets counts.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pybroker.cli.perf import formats
from pybroker.cli.perf.options import (
    ToolError,
    add_json_option,
    check_file,
    read_command_properties,
    read_config_file,
    warn_of_unknown,
    write_json,
)
from pybroker.cli.perf.progress import ProgressBar
from pybroker.client import EARLIEST, LATEST, Admin, Consumer, Fetcher, MetricValue, RebalanceListener, TopicPartition
from pybroker.client.settings import AdminSettings, ConsumerSettings, FetcherSettings

_TICK_S = 0.1

Count = Callable[[float], tuple[int, int] | None]
"""Waits for records, at most for the given seconds. Returns (records, bytes of keys and values), or None."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare Kafka's options, with old and new names."""
    add = parser.add_argument
    add("--bootstrap-server", required=True, metavar="SERVER", help="REQUIRED: The server(s) to connect to.")
    add("--topic", metavar="TOPIC", help="The topic to consume from.")
    add("--include", metavar="REGEX", help="Regular expression of the topics to consume from.")
    add("--num-records", type=int, metavar="COUNT", help="REQUIRED: The number of records to consume.")
    add("--messages", type=int, metavar="COUNT", help="(DEPRECATED) Use --num-records instead.")
    add("--group", metavar="GID", help="Join this group. Without it, all partitions are read without a group.")
    add(
        "--fetch-size",
        type=int,
        default=1_048_576,
        metavar="SIZE",
        help="Maximum bytes of a partition per request (1048576).",
    )
    add("--from-latest", action="store_true", help="Start with the latest record rather than the earliest.")
    add(
        "--socket-buffer-size",
        type=int,
        default=2_097_152,
        metavar="SIZE",
        help="The size of the tcp RECV size (2097152).",
    )
    add("--consumer.config", dest="consumer_config", metavar="FILE", help="(DEPRECATED) Use --command-config instead.")
    add("--command-config", metavar="FILE", help="Config properties file.")
    pairs: dict[str, Any] = {"nargs": "+", "action": "append", "metavar": "PROP=VALUE"}
    add("--command-property", **pairs, help="Consumer properties; they take precedence over --command-config.")
    add("--print-metrics", action="store_true", help="Print out the metrics.")
    add("--show-detailed-stats", action="store_true", help="Report each interval as given by --reporting-interval.")
    add(
        "--timeout",
        type=int,
        nargs="?",
        default=10_000,
        const=10_000,
        metavar="MS",
        help="Maximum time between returned records (default: 10000).",
    )
    add("--reporting-interval", type=int, default=5000, metavar="MS", help="Interval of progress info (default: 5000).")
    add(
        "--date-format",
        default="yyyy-MM-dd HH:mm:ss:SSS",
        metavar="FORMAT",
        help="Format of the times in the output, with the syntax of java.text.SimpleDateFormat.",
    )
    add("--hide-header", action="store_true", help="Skips printing the header for the stats.")
    add_json_option(parser)


@dataclass(slots=True)
class Progress:
    """The counts so far, and those of the last detailed row."""

    start: datetime
    begun: float
    rebalance_s: float = 0.0
    records: int = 0
    size: int = 0
    reported_at: float = 0.0
    reported_records: int = 0
    reported_size: int = 0
    rows: int = 0

    def row(self, options: argparse.Namespace) -> str:
        """Return the next detailed row."""
        now = time.monotonic()
        elapsed_ms = max(1, round((now - self.reported_at) * 1000))
        # The time to the first record counts once, in the first row, as in Kafka's tool.
        rebalance_ms = round(self.rebalance_s * 1000) if self.rows == 0 else 0
        line = formats.consumer_interval(
            formats.java_date(options.date_format, datetime.now()),
            self.size,
            self.records,
            self.size - self.reported_size,
            self.records - self.reported_records,
            elapsed_ms,
            rebalance_ms,
        )
        self.reported_at, self.reported_records, self.reported_size = now, self.records, self.size
        self.rows += 1
        return line


def main(options: argparse.Namespace) -> int:
    """Run the tool. Returns 0 also when fewer records arrived than requested, as Kafka's tool does."""
    check_file("--json", options.json)
    wanted, word = read_wanted(options)
    properties = read_properties(options)
    warn_of_unknown(FetcherSettings if options.group is None else ConsumerSettings, properties)
    if not options.hide_header:
        print(formats.CONSUMER_DETAILED_HEADER if options.show_detailed_stats else formats.CONSUMER_HEADER)
    begun = time.monotonic()
    progress = Progress(datetime.now(), begun, reported_at=begun)
    with ProgressBar("records read", wanted) as bar, open_reader(options, properties, progress) as (count, metrics):
        in_time = read(count, progress, options, wanted, bar)
        values = metrics() if options.print_metrics else []
        end, ended = datetime.now(), time.monotonic()
    if not in_time:
        print(formats.consumer_timeout(options.timeout, word))
    elapsed_ms, rebalance_ms = round((ended - begun) * 1000), round(progress.rebalance_s * 1000)
    if not options.show_detailed_stats:
        begin_text = formats.java_date(options.date_format, progress.start)
        end_text = formats.java_date(options.date_format, end)
        size, records = progress.size, progress.records
        print(formats.consumer_total(begin_text, end_text, size, records, elapsed_ms, rebalance_ms))
    for line in formats.metric_lines(values):
        print(line)
    write_json(options.json, figures(options, properties, progress, ended - begun, in_time))
    return 0


def read_wanted(options: argparse.Namespace) -> tuple[int, str]:
    """Return the number of records to read, and "records" or "messages", after the option that was given.

    Checks the other options too. Raises ToolError.
    """
    if (options.num_records is None) == (options.messages is None):
        raise ToolError("Exactly one of --num-records and --messages (deprecated) must be given.")
    if (options.topic is None) == (options.include is None):
        raise ToolError("Exactly one of the following arguments is required: [topic], [include]")
    if options.reporting_interval <= 0:
        raise ToolError("Reporting interval must be greater than 0.")
    try:
        formats.java_date(options.date_format, datetime.now())
    except ValueError as error:
        raise ToolError(str(error)) from None
    if options.messages is not None:
        print("Warning: --messages is deprecated. Use --num-records instead.")
        return options.messages, "messages"
    return options.num_records, "records"


def read_properties(options: argparse.Namespace) -> dict[str, str]:
    """Return the fetcher's properties. Options override --command-property, which overrides the properties files."""
    return {
        "client.id": "perf-consumer-client",
        **read_config_file(options.consumer_config),
        **read_config_file(options.command_config),
        "check.crcs": "false",
        **read_command_properties(options.command_property),
        "receive.buffer.bytes": str(options.socket_buffer_size),
        "max.partition.fetch.bytes": str(options.fetch_size),
        "auto.offset.reset": "latest" if options.from_latest else "earliest",
    }


@contextlib.contextmanager
def open_reader(
    options: argparse.Namespace, properties: dict[str, str], progress: Progress
) -> Iterator[tuple[Count, Callable[[], list[MetricValue]]]]:
    """Yield a function that counts arrived records, and a function that returns metrics.

    With `--group` records of the group's assigned partitions are read, otherwise those of all partitions.
    """
    if options.group is not None:
        with Consumer(options.bootstrap_server, {**properties, "group.id": options.group}) as consumer:
            pattern = None if options.include is None else re.compile(options.include)
            topics = [options.topic] if options.topic is not None else []
            consumer.subscribe(topics, pattern=pattern, listener=RebalanceClock(progress))
            yield consumer.count, consumer.metric_values
        return
    with Fetcher(options.bootstrap_server, properties) as fetcher:
        partitions = find_partitions(options, properties)
        fetcher.assign(dict.fromkeys(partitions, LATEST if options.from_latest else EARLIEST))
        progress.rebalance_s = time.monotonic() - progress.begun
        yield fetcher.native.count, fetcher.metric_values


class RebalanceClock(RebalanceListener):
    """Sums up the time without partitions, from the start and from each revocation on, as Kafka's tool does."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._since = progress, progress.begun

    def on_revoked(self, _partitions: Sequence[TopicPartition], /) -> None:
        """Start the clock."""
        self._since = time.monotonic()

    def on_assigned(self, _partitions: Sequence[TopicPartition], /) -> None:
        """Stop the clock."""
        self._progress.rebalance_s += time.monotonic() - self._since


def find_partitions(options: argparse.Namespace, properties: dict[str, str]) -> list[TopicPartition]:
    """Return every partition of the topic, or of the matching topics. Raises ToolError or BrokerError."""
    try:
        include = re.compile(options.include or "")
    except re.error as error:
        raise ToolError(f"--include {options.include}: must be a regular expression ({error})") from None
    with Admin(options.bootstrap_server, AdminSettings.acting(properties)) as admin:
        names = [options.topic]
        if options.include is not None:
            names = [name for name in admin.list_topics() if include.fullmatch(name)]
            if not names:
                raise ToolError(f"no topic of {options.bootstrap_server} matches --include {options.include}")
        return [TopicPartition(topic.name, p.index) for topic in admin.describe_topics(names) for p in topic.partitions]


def read(count: Count, progress: Progress, options: argparse.Namespace, wanted: int, bar: ProgressBar) -> bool:
    """Read until enough records have arrived (true), or none have arrived for too long (false)."""
    last_record, last_tick = time.monotonic(), time.monotonic()
    interval_s = options.reporting_interval / 1000
    while progress.records < wanted:
        counted = count(_TICK_S)
        now = time.monotonic()
        if counted is not None and counted[0]:
            progress.records += counted[0]
            progress.size += counted[1]
            last_record = now
        elif now - last_record > options.timeout / 1000:
            return False
        if now - last_tick > _TICK_S:
            bar.update(progress.records)
            last_tick = now
        if options.show_detailed_stats and now - progress.reported_at >= interval_s:
            bar.report(progress.row(options))
    bar.update(progress.records)
    return True


def figures(
    options: argparse.Namespace, properties: dict[str, str], progress: Progress, elapsed_s: float, in_time: bool
) -> dict[str, Any]:
    """Return the document of `--json`."""
    fetch_s = elapsed_s - progress.rebalance_s
    return {
        "tool": "consumer-perf",
        "topic": options.topic or options.include,
        "settings": properties,
        "records": progress.records,
        "bytes": progress.size,
        "seconds": elapsed_s,
        "fetch_seconds": fetch_s,
        "records_per_second": progress.records / elapsed_s,
        "fetch_records_per_second": formats.ratio(progress.records, fetch_s),
        "mb_per_second": progress.size / elapsed_s / formats.MB,
        "timed_out": not in_time,
    }
