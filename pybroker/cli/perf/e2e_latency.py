"""kafka-e2e-latency on the native client: Kafka's options (positional and named) and output, and `--json`.

Measures one record at a time: from before it is sent until a waiting consumer has it, including its acknowledgement.
"""

from __future__ import annotations

import argparse
import random
import string
import time
from collections.abc import Sequence
from typing import Any

from pybroker.cli.perf.options import (
    ToolError,
    add_json_option,
    check_file,
    read_config_file,
    warn_of_unknown,
    write_json,
)
from pybroker.cli.perf.progress import ProgressBar
from pybroker.client import LATEST, Admin, BrokerError, Fetcher, NewTopic, Producer, TopicPartition
from pybroker.client.consuming.fetcher import Record
from pybroker.client.settings import AdminSettings, ProducerSettings
from pybroker.protocol.errors import ErrorCode

_TIMEOUT_S = 60.0
_POSITIONS = ("bootstrap_server", "topic", "num_records", "producer_acks", "record_size", "command_config")
_DEPRECATED = (
    "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. "
    "Please use named arguments instead: --bootstrap-server, --topic, --num-records, --producer-acks, "
    "--record-size, --command-config"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare Kafka's options, with old and new names."""
    add = parser.add_argument
    add("positional", nargs="*", metavar="ARG", help="(DEPRECATED) " + " ".join(_POSITIONS))
    add(
        "--bootstrap-server",
        metavar="SERVER",
        help="REQUIRED: The Kafka broker list string in the form HOST1:PORT1,...",
    )
    add("--topic", metavar="TOPIC", help="REQUIRED: The topic to use for the test.")
    add("--num-records", type=int, metavar="COUNT", help="REQUIRED: The number of messages to send.")
    add("--producer-acks", choices=("1", "all"), metavar="ACKS", help="REQUIRED: Producer acknowledgements: 1 or all.")
    add("--record-size", type=int, metavar="BYTES", help="REQUIRED: The size of each message payload in bytes.")
    add(
        "--record-key-size",
        type=int,
        default=0,
        metavar="BYTES",
        help="The size of the message key (default: 0, none).",
    )
    add(
        "--num-headers",
        type=int,
        default=0,
        metavar="COUNT",
        help="The number of headers of each message (default: 0).",
    )
    add("--record-header-key-size", type=int, default=0, metavar="BYTES", help="The size of each header key.")
    add(
        "--record-header-size",
        type=int,
        default=0,
        metavar="BYTES",
        help="The size of each header value, -1 for null (default: 0).",
    )
    add("--command-config", metavar="FILE", help="Config properties file.")
    add_json_option(parser)


def main(options: argparse.Namespace) -> int:
    """Run the tool. Raises ToolError when a record does not arrive, or another one does."""
    check_file("--json", options.json)
    read_positional(options)
    properties = read_config_file(options.command_config)
    warn_of_unknown(ProducerSettings, properties)
    partitions = have_topic(options, properties)
    producer_properties = {**properties, "linger.ms": "0", "acks": options.producer_acks}
    latencies_ns = []
    with (
        Producer(options.bootstrap_server, producer_properties) as producer,
        Fetcher(options.bootstrap_server, properties) as fetcher,
        ProgressBar("round trips", options.num_records) as bar,
    ):
        fetcher.assign(end_of(options, partitions))
        for number in range(options.num_records):
            latencies_ns.append(round_trip(producer, fetcher, options))
            if number % 1000 == 0:
                bar.report(f"{number}\t{latencies_ns[-1] / 1e6}")
            bar.update(number + 1)
    report(options, properties, latencies_ns)
    return 0


def read_positional(options: argparse.Namespace) -> None:
    """Parse the positional arguments of the old form, and check that none is missing. Raises ToolError."""
    given: Sequence[str] = options.positional
    if given:
        if len(given) not in (5, 6):
            raise ToolError(
                f"Invalid number of arguments. Expected 5 or 6 positional arguments, but got {len(given)}. "
                "Usage: bootstrap-server topic num-records producer-acks record-size [optional] command-config"
            )
        print(_DEPRECATED)
        for name, value in zip(_POSITIONS, given, strict=False):
            number = name in ("num_records", "record_size")
            try:
                setattr(options, name, int(value) if number else value)
            except ValueError:
                raise ToolError(f"{name}: {value!r} is not a number") from None
    for name in _POSITIONS[:5]:
        if getattr(options, name) is None:
            raise ToolError(f'Missing required argument "[--{name.replace("_", "-")}]"')
    if options.producer_acks not in ("1", "all"):
        raise ToolError("Latency testing requires synchronous acknowledgement. Please use 1 or all")
    check_numbers(options)


def check_numbers(options: argparse.Namespace) -> None:
    """Check the counts and sizes as Kafka's tool does. Raises ToolError with its messages."""
    if options.num_records <= 0:
        raise ToolError("Value for --num-records must be a positive integer.")
    for name in ("record-size", "record-key-size", "record-header-key-size"):
        if getattr(options, name.replace("-", "_")) < 0:
            raise ToolError(f"Value for --{name} must be a non-negative integer.")
    if options.record_header_size < -1:
        raise ToolError("Value for --record-header-size must be a non-negative integer or -1 for null header value.")
    if options.num_headers < 0:
        raise ToolError("Value for --num-headers must be a non-negative integer.")


def have_topic(options: argparse.Namespace, properties: dict[str, str]) -> list[int]:
    """Return the topic's partitions. A missing topic is created with one partition and one replica."""
    with Admin(options.bootstrap_server, AdminSettings.acting(properties)) as admin:
        try:
            (topic,) = admin.describe_topics([options.topic])
        except BrokerError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            print(
                f'Topic "{options.topic}" does not exist. '
                "Will create topic with 1 partition(s) and replication factor = 1"
            )
            admin.create_topics([NewTopic(options.topic, 1, 1)])
            topic = admin.wait_for_leaders(options.topic)
        return [p.index for p in topic.partitions]


def end_of(options: argparse.Namespace, partitions: list[int]) -> dict[TopicPartition, int]:
    """Return the end offset of each partition, behind which the tool's records follow."""
    with Admin(options.bootstrap_server) as admin:
        requested = {TopicPartition(options.topic, index): LATEST for index in partitions}
        return {partition: found.offset for partition, found in admin.list_offsets(requested).items()}


def round_trip(producer: Producer, fetcher: Fetcher, options: argparse.Namespace) -> int:
    """Send a record and wait until it arrives. Returns nanoseconds."""
    value = _letters(options.record_size)
    key = _letters(options.record_key_size) if options.record_key_size else None
    size = options.record_header_size
    headers = [
        (_letters(options.record_header_key_size).decode(), None if size < 0 else _letters(size))
        for _ in range(options.num_headers)
    ]
    begun = time.perf_counter_ns()
    producer.send(options.topic, value, key, headers=headers).result(_TIMEOUT_S)
    records = fetcher.poll(_TIMEOUT_S)
    elapsed = time.perf_counter_ns() - begun
    check(records, value, key, headers)
    return elapsed


def check(records: list[Record], value: bytes, key: bytes | None, headers: list[tuple[str, bytes | None]]) -> None:
    """Check that exactly the sent record arrived. Raises ToolError."""
    if not records:
        raise ToolError(f"poll() timed out before finding a result (timeout:[{_TIMEOUT_S * 1000:.0f}ms])")
    if len(records) != 1:
        raise ToolError(f"Only one result was expected during this test. We found [{len(records)}]")
    (read,) = records
    for what, sent, got in (
        ("value", value, read.value),
        ("key", key, read.key),
        ("headers", headers, list(read.headers)),
    ):
        if sent != got:
            raise ToolError(f"The message {what} read [{got!r}] did not match the message {what} sent [{sent!r}]")


def _letters(size: int) -> bytes:
    return "".join(random.choices(string.ascii_uppercase, k=size)).encode()


def report(options: argparse.Namespace, properties: dict[str, str], latencies_ns: list[int]) -> None:
    """Print average and percentiles as Kafka's tool does, in whole ms; JSON has full precision."""
    count, ordered = len(latencies_ns), sorted(latencies_ns)
    print(f"Avg latency: {sum(latencies_ns) / count / 1e6:.4f} ms")
    p50, p99, p999 = (ordered[int(count * q)] // 1_000_000 for q in (0.5, 0.99, 0.999))
    print(f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}")
    latency: dict[str, Any] = {"avg": sum(latencies_ns) / count / 1e6, "max": ordered[-1] / 1e6}
    latency |= {f"p{q * 100:g}": ordered[int(count * q)] / 1e6 for q in (0.5, 0.9, 0.99, 0.999)}
    document = {"tool": "e2e-latency", "topic": options.topic, "records": count, "acks": options.producer_acks}
    write_json(options.json, {**document, "settings": properties, "latency_ms": latency})
