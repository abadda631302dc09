"""`pybroker console-consumer`: prints the records of topics, with the options and output of kafka-console-consumer.

Owns option names, the end of the reading, and the count of processed records. A group's offsets are committed only up
to the written records: an end in the middle of a block resets the positions. The engine generates the text; Python
handles blocks of it. Without a group, partitions are assigned
(docs/adr/0077-a-console-consumer-without-a-group-assigns.md).
"""

from __future__ import annotations

import errno
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli import standard_output
from pybroker.cli.console_options import add_files, add_properties, given_file, given_properties, read_file
from pybroker.cli.console_reading import Reading, open_reading
from pybroker.cli.errors import CommandError
from pybroker.cli.interrupts import Interrupts
from pybroker.cli.message_formatters import Formatter, UndecodedError, find_formatter, lay_out
from pybroker.client.errors import ClientError
from pybroker.client.network.retry_budget import is_retriable
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pybroker.client.consuming.fetcher import Record

DESCRIPTION = "Read data from topics and write it to standard output. Options are those of kafka-console-consumer."

_BLOCK_BYTES = 1 << 20
"""Bytes of text that are written at once."""
_POLLED = 500
"""Records of an internal topic that are formatted at once."""
_TICK_S = 0.5
"""The longest wait for records between two checks of other work, in seconds."""
_UNBOUNDED = 2**62


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--bootstrap-server", required=True, metavar="HOST:PORT", help="brokers to connect to")
    topics = parser.add_mutually_exclusive_group(required=True)
    topics.add_argument("--topic", help="the topic to read")
    topics.add_argument("--include", metavar="REGEX", help="the topics to read")
    add("--partition", type=int, metavar="ID", help="read only this partition, from its end unless --offset is given")
    add("--offset", help="first offset to read in the partition: a number, earliest or latest")
    add("--from-beginning", action="store_true", help="start at the earliest record if no offset is committed")
    add("--max-messages", type=int, metavar="COUNT", help="exit after this number of records")
    add("--timeout-ms", type=int, metavar="MS", help="exit if no record arrives for this time")
    add("--group", metavar="ID", help="read as a member of this group")
    add("--isolation-level", metavar="LEVEL", help="read_uncommitted (default) or read_committed")
    formatters = "Default, Logging, NoOp, Offsets, GroupMetadata, TransactionLog, or the class that Kafka has for it"
    add("--formatter", default="Default", metavar="NAME", help=f"{formatters}; json: indented JSON")
    add_properties(parser, "formatter-property", "property", "a property of the formatter, such as print.key=true")
    add("--formatter-config", type=Path, metavar="FILE", help="properties of the formatter")
    add("--key-deserializer", metavar="NAME", help="deserializer of keys: Integer, or the name of Kafka's class")
    add("--value-deserializer", metavar="NAME", help="deserializer of values")
    add("--json", action="store_true", help="print one JSON object per line for each record (Kafka lacks this option)")
    add("--skip-message-on-error", action="store_true", help="skip a record that cannot be printed, and continue")
    add("--enable-systest-events", action="store_true", help="print shutdown_complete at the end")
    add_properties(parser, "command-property", "consumer-property", "a setting of the consumer")
    add_files(parser, "command-config", "consumer.config", "settings of the consumer")


def run(arguments: argparse.Namespace) -> int:
    """Print records until an option, a signal or standard output ends it. Returns 0, and after a signal its status."""
    _check(arguments)
    formatter = find_formatter(arguments.formatter, _formatter_properties(arguments), as_json=arguments.json)
    if sys.stdout is None:
        raise CommandError("standard output is closed: there is nowhere to print records")
    output = Output(formatter, skips=arguments.skip_message_on_error)
    with Interrupts() as interrupts:
        try:
            return _print_all(arguments, output, interrupts)
        except KeyboardInterrupt:
            return interrupts.status
        except (ClientError, ConfigError) as error:
            if arguments.timeout_ms is None or not (isinstance(error, ClientError) and is_retriable(error)):
                raise CommandError(str(error)) from None
            _report_timed_out(arguments.timeout_ms, f": {error}")
            return 0
        finally:
            print(f"Processed a total of {output.records} messages", file=sys.stderr)
            if arguments.enable_systest_events:
                print("shutdown_complete", flush=True)


def _print_all(arguments: argparse.Namespace, output: Output, interrupts: Interrupts) -> int:
    properties = _consumer_properties(arguments)
    left = _UNBOUNDED if arguments.max_messages is None else arguments.max_messages
    with open_reading(arguments, properties) as reading:
        last = time.monotonic()
        while output.records < left and not interrupts.arrived:
            try:
                with interrupts.held():
                    arrived = output.print_next(reading, left - output.records, _wait_s(arguments.timeout_ms, last))
            except (OutputError, KeyboardInterrupt) as error:
                with interrupts.ignored():
                    reading.return_unwritten()
                if isinstance(error, KeyboardInterrupt):
                    raise
                _leave_output(error)
                return 0
            if arrived:
                last = time.monotonic()
            elif standard_output.has_lost_its_reader():
                # As in `| head`, of a topic whose last record was printed.
                standard_output.abandon()
                return 0
            elif arguments.timeout_ms is not None and (time.monotonic() - last) * 1000 > arguments.timeout_ms:
                _report_timed_out(arguments.timeout_ms)
                return 0
    return interrupts.status


def _report_timed_out(timeout_ms: int, why: str = "") -> None:
    reported = "ERROR Error processing message, terminating consumer process: no record came within"
    print(f"{reported} --timeout-ms {timeout_ms}{why}", file=sys.stderr)


def _wait_s(timeout_ms: int | None, last: float) -> float:
    if timeout_ms is None:
        return _TICK_S
    return min(_TICK_S, max(0.0, last + timeout_ms / 1000 - time.monotonic()) + 0.001)


def _leave_output(error: OutputError) -> None:
    """Report why reading ends, as Kafka's tool. A closed reader, as in `| head`, is not reported."""
    standard_output.abandon()
    if not isinstance(error.failure, BrokenPipeError):
        print(f"Unable to write to standard out, closing consumer. ({error.failure.strerror})", file=sys.stderr)


class OutputError(Exception):
    """A block of text was not written completely."""

    def __init__(self, failure: OSError) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Output:
    """Writes records, and counts the written ones."""

    def __init__(self, formatter: Formatter, *, skips: bool) -> None:
        self._formatter, self._skips = formatter, skips
        self._out = sys.stdout.buffer
        self.records = 0

    def print_next(self, reading: Reading, most: int, wait_s: float) -> bool:
        """Write the next records. Returns whether any arrived.

        Raises OutputError for a failed write, and CommandError for a record that cannot be formatted.
        """
        if self._formatter.show is not None:
            return self._print_records(reading, self._formatter.show, most, wait_s)
        assert self._formatter.layout is not None
        formatted = reading.format(self._formatter.layout, wait_s, most, _BLOCK_BYTES)
        if formatted is None:
            return False
        self._write(lay_out(formatted.text) if self._formatter.pretty else formatted.text)
        self.records += formatted.records
        reading.wrote(formatted.topic, formatted.partition, formatted.records)
        if formatted.log:
            sys.stderr.buffer.write(formatted.log)
        if formatted.failure is not None:
            offset, detail = formatted.failure
            self._fail(f"{formatted.topic}-{formatted.partition} offset {offset}: {detail}")
        return True

    def _print_records(self, reading: Reading, show: Callable[[Record], bytes], most: int, wait_s: float) -> bool:
        """As `print_next`, one by one. The records behind one that ends the reading are returned to the consumer."""
        records = reading.poll(wait_s, min(most, _POLLED))
        texts: list[bytes] = []
        failed: CommandError | None = None
        for number, record in enumerate(records):
            try:
                texts.append(show(record))
            except UndecodedError as error:
                try:
                    self._fail(f"Could not read record at offset {record.offset} due to: {error}")
                except CommandError as ends:
                    failed = ends
                    reading.return_records(records[number + 1 :])
                    del records[number + 1 :]
                    break
        self._write(b"".join(texts))
        self.records += len(records)
        for (topic, partition), count in Counter((record.topic, record.partition) for record in records).items():
            reading.wrote(topic, partition, count)
        if failed is not None:
            raise failed
        return bool(records)

    def _write(self, text: bytes) -> None:
        left = memoryview(text)
        try:
            while left:
                # Without a buffer (PYTHONUNBUFFERED), a signal interrupts a write in the middle.
                written = self._out.write(left)
                if written is None:
                    raise BlockingIOError(errno.EAGAIN, "it does not block, and is full")
                left = left[written:]
            self._out.flush()
        except OSError as error:
            raise OutputError(error) from None

    def _fail(self, what: str) -> None:
        if not self._skips:
            raise CommandError(f"Error processing message: {what}")
        print(f"ERROR Error processing message, skipping this message: {what}", file=sys.stderr)


def _check(arguments: argparse.Namespace) -> None:
    """Reject options that exclude each other, with Kafka's messages. Raises CommandError."""
    if arguments.partition is not None:
        if arguments.topic is None:
            raise CommandError("The topic is required when partition is specified.")
        if arguments.from_beginning and arguments.offset is not None:
            raise CommandError("Options from-beginning and offset cannot be specified together.")
    elif arguments.offset is not None:
        raise CommandError("The partition is required when offset is specified.")
    if arguments.max_messages is not None and arguments.max_messages < -1:
        raise CommandError(f"--max-messages {arguments.max_messages}: must be at least 0, or -1 for no end")
    if arguments.max_messages == -1:
        arguments.max_messages = None
    if arguments.timeout_ms is not None and arguments.timeout_ms < 0:
        arguments.timeout_ms = None


def _formatter_properties(arguments: argparse.Namespace) -> dict[str, str]:
    properties = read_file(arguments.formatter_config)
    for part in ("key", "value"):
        if named := getattr(arguments, f"{part}_deserializer"):
            properties[f"{part}.deserializer"] = named
    return properties | given_properties(arguments, "formatter-property", "property")


def _consumer_properties(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the consumer's settings, where the command line overrides a file. Raises CommandError."""
    properties = given_file(arguments, "command-config", "consumer.config")
    properties |= given_properties(arguments, "command-property", "consumer-property")
    reset = properties.setdefault("auto.offset.reset", "earliest" if arguments.from_beginning else "latest")
    if arguments.from_beginning and reset != "earliest":
        raise CommandError(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option"
        )
    properties.setdefault("client.id", "console-consumer")
    if arguments.isolation_level is not None:
        properties["isolation.level"] = arguments.isolation_level
    groups = {group for group in (arguments.group, properties.get("group.id")) if group}
    if len(groups) > 1:
        found = ", ".join(f"'{group}'" for group in sorted(groups))
        raise CommandError(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via "
            f"'--consumer.config') do not match. Detected group ids: {found}"
        )
    if groups and arguments.partition is not None:
        raise CommandError("Options group and partition cannot be specified together.")
    if groups:
        properties["group.id"] = groups.pop()
    # The option's servers override those of a settings file.
    properties.pop("bootstrap.servers", None)
    return properties
