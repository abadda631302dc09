"""kafka-producer-perf-test on the native producer: Kafka's options and output, and `--json`.

Owns pacing, windows and the summary. The engine measures latencies from `send` to the acknowledgement, and generates
records of random letters, so that Python runs no code for each record.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
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
from pybroker.client import LoadGenerator, Producer
from pybroker.client.errors import ClientError
from pybroker.client.settings import ProducerSettings

QUANTILES = [0.5, 0.95, 0.99, 0.999]
_STRIDE = 10_000
"""Records passed to the engine between two checks of the clock, without throttling."""
_STRIDE_BYTES = 4 * 1024 * 1024
_TICK_S = 0.1
TRANSACTION_MS = 3000
"""Kafka's default of --transaction-duration-ms."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare Kafka's options, with old and new names."""
    add = parser.add_argument
    add("--bootstrap-server", metavar="BOOTSTRAP-SERVER", help="The server(s) to connect to.")
    add("--topic", required=True, metavar="TOPIC", help="Produce records to this topic.")
    add("--num-records", required=True, type=int, metavar="NUM-RECORDS", help="Number of records to produce.")
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument("--record-size", type=int, metavar="RECORD-SIZE", help="Record size in bytes.")
    payload.add_argument(
        "--payload-file",
        metavar="PAYLOAD-FILE",
        help="UTF-8 text file. Each record is a payload of this file, chosen at random.",
    )
    payload.add_argument(
        "--payload-monotonic", action="store_true", help="Payload is a monotonically increasing integer."
    )
    add(
        "--payload-delimiter",
        default="\\n",
        metavar="PAYLOAD-DELIMITER",
        help="Delimiter of --payload-file (default: \\n).",
    )
    add(
        "--throughput",
        required=True,
        type=float,
        metavar="THROUGHPUT",
        help="Throttle maximum record throughput to *approximately* THROUGHPUT records/sec; -1: no throttling.",
    )
    pairs: dict[str, Any] = {"nargs": "+", "action": "append", "metavar": "PROP-NAME=PROP-VALUE"}
    add("--producer-props", **pairs, help="(DEPRECATED) Use --command-property instead.")
    add("--command-property", **pairs, help="Producer properties; they take precedence over --command-config.")
    add(
        "--producer.config",
        dest="producer_config",
        metavar="CONFIG-FILE",
        help="(DEPRECATED) Use --command-config instead.",
    )
    add("--command-config", metavar="CONFIG-FILE", help="Producer config properties file.")
    add("--print-metrics", action="store_true", help="Print out metrics at the end of the test.")
    add(
        "--transactional-id",
        metavar="TRANSACTIONAL-ID",
        help="Send in transactions with this id. It overrides the property transactional.id. With "
        "--transaction-duration-ms alone, the id is performance-producer- followed by a random UUID.",
    )
    add(
        "--transaction-duration-ms",
        type=int,
        metavar="TRANSACTION-DURATION",
        help=f"Commit each transaction after this time, more than 0 (default with an id: {TRANSACTION_MS}).",
    )
    add(
        "--warmup-records",
        type=int,
        default=0,
        metavar="WARMUP-RECORDS",
        help="Records before steady state (default: 0).",
    )
    add(
        "--reporting-interval",
        type=int,
        default=5000,
        metavar="INTERVAL-MS",
        help="Interval in milliseconds at which to print progress info (default: 5000).",
    )
    add("--partition", type=int, default=-1, metavar="N", help="Produce to this partition only (no option of Kafka's).")
    add_json_option(parser)


@dataclass(slots=True)
class Window:
    """Counts of acknowledged records since `start`."""

    start: float
    records: int = 0
    size: int = 0
    latency_sum_us: int = 0
    latency_max_us: int = 0

    def line(self, now: float) -> str:
        """Return Kafka's line."""
        elapsed_ms = (now - self.start) * 1000
        return formats.producer_window(
            self.records, self.size, elapsed_ms, self.latency_sum_us / 1000, self.latency_max_us / 1000
        )


@dataclass(slots=True)
class Run:
    """One run: its options, and its state."""

    options: argparse.Namespace
    producer: Producer
    bar: ProgressBar
    window: Window = field(default_factory=lambda: Window(time.monotonic()))
    acknowledged: int = 0
    windows: list[dict[str, float]] = field(default_factory=list)
    steady_start: float | None = None
    """Time of the first record after the warm-up."""
    steady_reported: bool = False
    transaction_s: float | None = None
    """Duration of a transaction; None without transactions."""
    transaction_start: float | None = None
    """Start of the open transaction."""
    transactions: int = 0
    """Number of committed transactions."""

    load: LoadGenerator = field(init=False)

    def __post_init__(self) -> None:
        """Enable latency measurement of the producer's records."""
        self.load = LoadGenerator(self.producer)

    def begin_transaction(self) -> None:
        """Begin a transaction, where the options require it and none is open."""
        if self.transaction_s is not None and self.transaction_start is None:
            self.producer.begin_transaction()
            self.transaction_start = time.monotonic()

    def commit_transaction(self, least_s: float) -> None:
        """Commit the open transaction, where it is at least that old."""
        if self.transaction_start is not None and time.monotonic() - self.transaction_start >= least_s:
            self.producer.commit_transaction()
            self.transaction_start = None
            self.transactions += 1

    def tick(self) -> None:
        """Count acknowledged records, and print the window when it is due."""
        tally, now = self.load.take_window(), time.monotonic()
        window = self.window
        window.records += tally.records
        window.size += tally.bytes
        window.latency_sum_us += tally.latency_sum_us
        window.latency_max_us = max(window.latency_max_us, tally.latency_max_us)
        self.acknowledged += tally.records
        self.bar.update(self.acknowledged)
        if now - window.start < self.options.reporting_interval / 1000 or not window.records:
            return
        if self.steady_start is not None and not self.steady_reported:
            self.bar.report("In steady state.")
            self.steady_reported = True
        self.bar.report(window.line(now))
        rate = window.records / (now - window.start)
        self.windows.append({"seconds": now - window.start, "records": window.records, "records_per_second": rate})
        self.window = Window(now)


def main(options: argparse.Namespace) -> int:
    """Run the tool. Returns 0, or 1 when records failed or nothing could be sent."""
    check_file("--json", options.json)
    properties = read_properties(options)
    warn_of_unknown(ProducerSettings, properties)
    servers = properties.pop("bootstrap.servers")
    with ProgressBar("records sent", options.num_records) as bar, Producer(servers, properties) as producer:
        run = Run(options, producer, bar)
        if properties.get("transactional.id"):
            producer.init_transactions()
            run.transaction_s = (options.transaction_duration_ms or TRANSACTION_MS) / 1000
        if options.warmup_records > 0:
            print(
                f"Warmup first {options.warmup_records} records. "
                "Steady state results will print after the complete test summary."
            )
        start = time.monotonic()
        send_all(run)
        run.commit_transaction(0)
        drain(run)
        end = time.monotonic()
    return report(run, end - start, end, properties)


def read_properties(options: argparse.Namespace) -> dict[str, str]:
    """Return the producer's properties; the command line overrides the file. Raises ToolError."""
    if options.num_records < 1 or not 0 <= options.warmup_records < options.num_records:
        raise ToolError("--num-records must be at least 1, and --warmup-records at least 0 and below it")
    if options.record_size is not None and options.record_size <= 0:
        raise ToolError("--record-size should be greater than zero.")
    if options.transaction_duration_ms is not None and options.transaction_duration_ms <= 0:
        raise ToolError("--transaction-duration-ms should be greater than zero.")
    if options.reporting_interval <= 0:
        raise ToolError("--reporting-interval should be greater than zero.")
    pairs = [*(options.producer_props or ()), *(options.command_property or ())]
    properties = {
        "client.id": "perf-producer-client",
        **read_config_file(options.producer_config),
        **read_config_file(options.command_config),
        **read_command_properties(pairs),
    }
    if options.bootstrap_server:
        properties["bootstrap.servers"] = options.bootstrap_server
    if "bootstrap.servers" not in properties:
        raise ToolError(
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or "
            "--command-config must be specified with bootstrap.servers."
        )
    if options.transactional_id:
        properties["transactional.id"] = options.transactional_id
    elif options.transaction_duration_ms and not properties.get("transactional.id"):
        properties["transactional.id"] = f"performance-producer-{uuid.uuid4()}"
    return properties


def send_all(run: Run) -> None:
    """Send every record, paced and in groups."""
    options, start, last_tick = run.options, time.monotonic(), time.monotonic()
    send, stride = sender(run)
    sent = 0
    while sent < options.num_records:
        if options.warmup_records and sent == options.warmup_records:
            run.steady_start = time.monotonic()
            run.load.begin_phase(1)
        boundary = options.warmup_records if sent < options.warmup_records else options.num_records
        count = min(stride, boundary - sent)
        run.begin_transaction()
        send(sent, count)
        sent += count
        run.commit_transaction(run.transaction_s or 0)
        if (now := time.monotonic()) - last_tick > _TICK_S:
            run.tick()
            last_tick = now
        if options.throughput > 0:
            pace(run, start + sent / options.throughput)


def pace(run: Run, due: float) -> None:
    """Wait until the next group is due, reporting meanwhile."""
    while (left := due - time.monotonic()) > 0:
        time.sleep(min(left, _TICK_S))
        if left > _TICK_S:
            run.tick()


def sender(run: Run) -> tuple[Callable[[int, int], None], int]:
    """Return a function that sends `count` records from number `first` on, and the best count of one call."""
    options, producer = run.options, run.producer
    topic, partition = options.topic, options.partition
    stride = _STRIDE if options.throughput <= 0 else max(1, min(_STRIDE, int(options.throughput / 500)))
    if options.record_size is not None:
        size = options.record_size
        make = run.load.send_random_letters
        return (lambda _first, count: make(topic, partition, size, count)), max(1, min(stride, _STRIDE_BYTES // size))
    payloads = read_payloads(options) if options.payload_file else None
    choose = random.Random(0)
    send = producer.send

    def send_each(first: int, count: int) -> None:
        for number in range(first, first + count):
            value = str(number).encode() if payloads is None else choose.choice(payloads)
            send(topic, value, partition=partition)

    return send_each, min(stride, 1000)


def read_payloads(options: argparse.Namespace) -> list[bytes]:
    """Read the payloads of `--payload-file`. Raises ToolError."""
    print(f"Reading payloads from: {Path(options.payload_file).resolve()}")
    try:
        text = Path(options.payload_file).read_text(encoding="utf-8")
    except OSError as error:
        raise ToolError(f"{options.payload_file}: {error.strerror}") from None
    delimiter = options.payload_delimiter.encode().decode("unicode_escape")
    payloads = text.split(delimiter)
    while payloads and not payloads[-1]:
        payloads.pop()  # as Java's String.split does
    if not payloads:
        raise ToolError("File does not exist or empty file provided.")
    print(f"Number of records read: {len(payloads)}")
    return [payload.encode() for payload in payloads]


def drain(run: Run) -> None:
    """Wait for the last acknowledgements, reporting meanwhile."""
    while True:
        try:
            run.producer.flush(_TICK_S)
        except ClientError:
            # The timeout is over, or records failed: `report` prints the first error.
            run.tick()
        else:
            run.tick()
            return


def report(run: Run, elapsed_s: float, end: float, properties: dict[str, str]) -> int:
    """Print the summaries, and write the JSON."""
    phases = [(0, elapsed_s, False)]
    if run.steady_start is not None:
        phases.append((1, end - run.steady_start, True))
    summaries = []
    for phase, seconds, steady in phases:
        tally, latencies_us = run.load.summary(phase, QUANTILES)
        p50, p95, p99, p999 = (us // 1000 for us in latencies_us)
        sum_ms, max_ms = tally.latency_sum_us / 1000, tally.latency_max_us / 1000
        print(
            formats.producer_total(
                *(tally.records, tally.bytes, seconds * 1000, sum_ms, max_ms, (p50, p95, p99, p999)),
                steady_state=steady,
            )
        )
        summaries.append(figures(tally, latencies_us, seconds))
    if run.options.print_metrics:
        for line in formats.metric_lines(run.producer.metric_values()):
            print(line)
    write_json(
        run.options.json,
        {
            "tool": "producer-perf",
            "topic": run.options.topic,
            "record_size": run.options.record_size,
            "throughput": run.options.throughput,
            "settings": properties,
            **summaries[0],
            "transactions": run.transactions,
            "steady_state": summaries[1] if len(summaries) > 1 else None,
            "windows": run.windows,
        },
    )
    try:
        run.producer.raise_failure()
    except ClientError as failure:
        print(f"{summaries[0]['failed']} records were not acknowledged; the first failure: {failure}", file=sys.stderr)
        return 1
    return 0


def figures(tally: Any, latencies_us: list[int], seconds: float) -> dict[str, Any]:
    """Return the values of `--json` for a period of time; `tally` has its sums."""
    return {
        "records": tally.records,
        "failed": tally.failed,
        "bytes": tally.bytes,
        "seconds": seconds,
        "records_per_second": tally.records / seconds,
        "mb_per_second": tally.bytes / seconds / formats.MB,
        "latency_ms": {
            "avg": formats.ratio(tally.latency_sum_us / 1000, tally.records) if tally.records else None,
            "max": tally.latency_max_us / 1000,
            **{f"p{q * 100:g}": us / 1000 for q, us in zip(QUANTILES, latencies_us, strict=True)},
        },
    }
