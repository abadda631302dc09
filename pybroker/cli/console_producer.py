"""`pybroker console-producer`: sends lines of standard input as records, with the options of kafka-console-producer.

Owns option names, the prompt, and the messages about failed records. The engine splits lines and creates records, a
block at a time; with `--sync` each record is awaited.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybroker.cli.broker_watch import BrokerWatch
from pybroker.cli.console_options import add_files, add_properties, given_file, given_properties, is_true, read_file
from pybroker.cli.errors import CommandError
from pybroker.cli.interrupts import Interrupts
from pybroker.cli.kafka_exceptions import java_text
from pybroker.client.errors import ClientError, DeliveryError, RecordError
from pybroker.client.producing.producer import Producer
from pybroker.client.text import LineSender

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

DESCRIPTION = "Read lines from standard input and send each as a record. Options are those of kafka-console-producer."

_READER = "org.apache.kafka.tools.LineMessageReader"
_READERS = (_READER, "LineMessageReader", "kafka.tools.ConsoleProducer$LineMessageReader")
_BLOCK_BYTES = 1 << 18
_SHORTLY_S = 1.0
_POLL_INTERVAL_MS = 100
"""Interval of checks for failures, while records are in flight and no line arrives."""

_MERGED = {
    "linger.ms": ("timeout", 1000),
    "acks": ("request_required_acks", "-1"),
    "request.timeout.ms": ("request_timeout_ms", 1500),
    "retries": ("message_send_max_retries", 3),
    "retry.backoff.ms": ("retry_backoff_ms", 100),
    "send.buffer.bytes": ("socket_buffer_size", 102_400),
    "buffer.memory": ("max_memory_bytes", 33_554_432),
    "batch.size": ("batch_size", 16_384),
    "metadata.max.age.ms": ("metadata_expiry_ms", 300_000),
    "max.block.ms": ("max_block_ms", 60_000),
}
"""The settings of dedicated options, and the tool's default where neither is given (Kafka's tool)."""
_SEPARATORS = {
    "key.separator": "\t",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
}
_SWITCHES = ("parse.key", "parse.headers", "ignore.error")
_UNEQUAL = (
    ("headers.delimiter", "headers.separator"),
    ("headers.delimiter", "headers.key.separator"),
    ("headers.separator", "headers.key.separator"),
    ("null.marker", "key.separator"),
    ("null.marker", "headers.separator"),
    ("null.marker", "headers.delimiter"),
    ("null.marker", "headers.key.separator"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    servers = parser.add_mutually_exclusive_group(required=True)
    servers.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to")
    servers.add_argument(
        "--broker-list", dest="bootstrap_server", metavar="HOST:PORT", help="deprecated: --bootstrap-server"
    )
    add("--topic", required=True, help="the topic to send to")
    add("--sync", action="store_true", help="wait for the acknowledgement of each record before the next one is sent")
    codecs = "none, gzip, snappy, lz4 or zstd; without a value gzip"
    add("--compression-codec", nargs="?", const="gzip", metavar="CODEC", help=codecs)
    for option, key in (
        ("batch-size", "batch.size"),
        ("max-partition-memory-bytes", "batch.size; overrides --batch-size"),
        ("request-timeout-ms", "request.timeout.ms"),
        ("message-send-max-retries", "retries"),
        ("retry-backoff-ms", "retry.backoff.ms"),
        ("timeout", "linger.ms"),
        ("max-block-ms", "max.block.ms"),
        ("max-memory-bytes", "buffer.memory"),
        ("metadata-expiry-ms", "metadata.max.age.ms"),
        ("socket-buffer-size", "send.buffer.bytes"),
    ):
        default = next((d for name, d in _MERGED.values() if name == option.replace("-", "_")), None)
        shown = "" if default is None else f" (default: {default})"
        add(f"--{option}", type=int, metavar="N", help=f"the producer's {key}{shown}")
    add("--request-required-acks", metavar="ACKS", help="the producer's acks (default: -1)")
    add("--line-reader", default=_READER, metavar="CLASS", help=f"class of the line reader: only {_READER}")
    reader = "a property of the line reader, such as parse.key=true, key.separator, parse.headers or null.marker"
    add_properties(parser, "reader-property", "property", reader)
    add("--reader-config", type=Path, metavar="FILE", help="properties of the reader")
    add_properties(parser, "command-property", "producer-property", "a setting of the producer")
    add_files(parser, "command-config", "producer.config", "settings of the producer")


def run(arguments: argparse.Namespace) -> int:
    """Send until standard input ends. Returns 1 where a record was not acknowledged, after a signal its status."""
    if arguments.line_reader not in _READERS:
        raise CommandError(f"--line-reader {arguments.line_reader}: there is no JVM here; there is {_READER}")
    properties, reader = _producer_properties(arguments), _reader(arguments)
    with Interrupts() as interrupts:
        try:
            return _send_all(arguments, properties, reader, interrupts)
        except KeyboardInterrupt:
            return interrupts.status
        except ClientError as error:
            raise CommandError(java_text(error)) from None


def _send_all(
    arguments: argparse.Namespace, properties: dict[str, str], reader: dict[str, Any], interrupts: Interrupts
) -> int:
    with (
        Producer(arguments.bootstrap_server, properties) as producer,
        BrokerWatch(arguments.bootstrap_server, properties) as watch,
    ):
        sender = LineSender(producer, arguments.topic, **reader)
        console = _Console(producer, sender, watch, arguments.topic)
        # As Kafka's tool: lines read before a signal are sent. Another signal ends that, too.
        with contextlib.suppress(KeyboardInterrupt):
            console.send_each() if arguments.sync else console.send_blocks()
        console.finish(is_interrupted=interrupts.arrived)
    return interrupts.status or (1 if console.failed else 0)


class _Console:
    """Standard input, and the producer of its lines."""

    def __init__(self, producer: Producer, sender: LineSender, watch: BrokerWatch, topic: str) -> None:
        self._producer, self._sender, self._watch, self._topic = producer, sender, watch, topic
        self._waiting = select.poll()
        self._input: int | None = None
        """None where standard input is closed (`<&-`): then there are no lines."""
        self._prompts = False
        if sys.stdin is not None:
            self._input = sys.stdin.fileno()
            self._waiting.register(self._input, select.POLLIN)
            self._prompts = sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()
        self.failed = 0

    def send_blocks(self) -> None:
        """Send the lines of a block together. Raises CommandError for a line that cannot be parsed."""
        block = b"-"
        while block:
            block = self._read()
            self._watch.begin()
            try:
                self._sender.send(block, not block)
            except RecordError as error:
                self._producer.flush()
                self.report()
                raise CommandError(str(error)) from None
            finally:
                self._watch.end()
            self.report()

    def send_each(self) -> None:
        """Send one record after the other. Raises CommandError for the first that fails, or cannot be parsed."""
        block = b"-"
        while block:
            block = self._read()
            records, failure = self._sender.parse(block, not block)
            for key, value, headers in records:
                self._watch.begin()
                try:
                    self._producer.send(self._topic, value, key, headers=headers).result()
                finally:
                    self._watch.end()
            if failure is not None:
                raise CommandError(failure)

    def report(self) -> None:
        """Report the failures since the last call, record by record, as Kafka's tool logs them."""
        for key, value, error in self._sender.take_failures():
            self.failed += 1
            reported = java_text(error) if isinstance(error, ClientError) else str(error)
            print(
                f"ERROR Error when sending message to topic {self._topic} with key: {_size(key)}, value: "
                f"{_size(value)} with error: {reported}",
                file=sys.stderr,
            )

    def finish(self, *, is_interrupted: bool) -> None:
        """Wait for the sent records, and report failures. After a signal, unacknowledged records fail."""
        try:
            if is_interrupted:
                self._wait_shortly()
            self._producer.flush()
        except KeyboardInterrupt:
            # Each of these records fails, and is reported.
            with contextlib.suppress(DeliveryError):
                self._producer.close(0.0)
        self.report()

    def _wait_shortly(self) -> None:
        """Wait for a moment. Returns whether records are still in flight."""
        try:
            self._producer.flush(_SHORTLY_S)
        except DeliveryError:
            waiting = f"{self._sender.in_flight()} records are not acknowledged yet"
            print(f"WARN {waiting}; another signal ends without them", file=sys.stderr, flush=True)

    def _read(self) -> bytes:
        """Return the bytes that have arrived, empty at the end; reports failures meanwhile."""
        if self._input is None:
            return b""
        if self._prompts:
            sys.stdout.write(">")
            sys.stdout.flush()
        while self._sender.in_flight() and not self._waiting.poll(_POLL_INTERVAL_MS):
            self.report()
        return os.read(self._input, _BLOCK_BYTES)


def _size(size: int | None) -> str:
    return "null" if size is None else f"{size} bytes"


def _producer_properties(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the producer's settings: options override the command line's properties, and these a file's."""
    properties = given_file(arguments, "command-config", "producer.config")
    properties |= given_properties(arguments, "command-property", "producer-property")
    if properties.get("transactional.id"):
        raise CommandError(
            f"transactional.id={properties['transactional.id']}: lines are sent without transactions; leave it out"
        )
    properties.setdefault("client.id", "console-producer")
    if arguments.compression_codec is not None:
        properties["compression.type"] = arguments.compression_codec
    for key, (option, default) in _MERGED.items():
        given = getattr(arguments, option)
        if given is not None or key not in properties:
            properties[key] = str(default if given is None else given)
    if arguments.max_partition_memory_bytes is not None:
        properties["batch.size"] = str(arguments.max_partition_memory_bytes)
    # The option's servers override those of a settings file.
    properties.pop("bootstrap.servers", None)
    return properties


def _reader(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the line parser's arguments. Raises CommandError."""
    given = read_file(arguments.reader_config) | given_properties(arguments, "reader-property", "property")
    known = {*_SEPARATORS, *_SWITCHES, "null.marker", "topic"}
    if unknown := sorted(given.keys() - known):
        raise CommandError(f"{unknown[0]}: is no property of the reader; there are {', '.join(sorted(known))}")
    texts = {**_SEPARATORS, **{key: value for key, value in given.items() if key not in _SWITCHES}}
    _check_unequal(texts)
    if empty := [key for key in _SEPARATORS if not texts[key]]:
        raise CommandError(f"{empty[0]} is empty: must be what stands between two parts of a line")
    separators = {key.replace(".", "_"): _bytes(texts[key]) for key in _SEPARATORS}
    switches = {key.replace(".", "_"): is_true(given.get(key, "false")) for key in _SWITCHES}
    return {**separators, **switches, "null_marker": _bytes(texts["null.marker"]) if "null.marker" in texts else None}


def _check_unequal(texts: Mapping[str, str]) -> None:
    for one, other in _UNEQUAL:
        if one in texts and texts[one] == texts[other]:
            raise CommandError(f"{one} and {other} may not be equal")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
