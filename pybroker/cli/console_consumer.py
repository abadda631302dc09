"""`pybroker console-consumer`: prints the records of topics, with the options and output of kafka-console-consumer.

Owns option names, when reading ends, and how many records were processed. The engine writes the text; Python handles
blocks of it. Without a group, partitions are assigned (docs/adr/0077-a-console-consumer-without-a-group-assigns.md).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.console_options import add_files, add_properties, given_file, given_properties, read_file
from pybroker.cli.console_reading import Reading, open_reading
from pybroker.cli.errors import CommandError
from pybroker.cli.message_formatters import Formatter, UndecodedError, find_formatter, lay_out
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse

    from pybroker.client.fetcher import Record

DESCRIPTION = "Read data from topics and write it to standard output. Options are those of kafka-console-consumer."

_BLOCK_BYTES = 1 << 20
"""Text that is written at once."""
_POLLED = 500
"""Records of an internal topic that are shown at once."""
_TICK_S = 0.5
"""The longest wait for records between two looks at what is due."""
_UNBOUNDED = 2**62


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--bootstrap-server", required=True, metavar="HOST:PORT", help="brokers to connect to")
    topics = parser.add_mutually_exclusive_group(required=True)
    topics.add_argument("--topic", help="the topic to read")
    topics.add_argument("--include", metavar="REGEX", help="the topics to read")
    add("--partition", type=int, metavar="ID", help="read this partition alone, from its end without --offset")
    add("--offset", help="where to begin in the partition: a number, earliest or latest")
    add("--from-beginning", action="store_true", help="begin at the first record where no offset is committed")
    add("--max-messages", type=int, metavar="COUNT", help="end after so many records")
    add("--timeout-ms", type=int, metavar="MS", help="end when no record comes for so long")
    add("--group", metavar="ID", help="read as a member of this group")
    add("--isolation-level", metavar="LEVEL", help="read_uncommitted (as without it) or read_committed")
    formatters = "Default, Logging, NoOp, Offsets, GroupMetadata, TransactionLog, or the class that Kafka has for it"
    add("--formatter", default="Default", metavar="NAME", help=f"{formatters}; json: JSON laid out for people")
    add_properties(parser, "formatter-property", "property", "print.key=true and the like, of the formatter")
    add("--formatter-config", type=Path, metavar="FILE", help="properties of the formatter")
    add("--key-deserializer", metavar="NAME", help="how keys are shown: Integer, or the class that Kafka has for it")
    add("--value-deserializer", metavar="NAME", help="how values are shown")
    add("--json", action="store_true", help="write an object of JSON a line for each record (no option of Kafka's)")
    add("--skip-message-on-error", action="store_true", help="go on behind a record that cannot be shown")
    add("--enable-systest-events", action="store_true", help="print shutdown_complete at the end")
    add_properties(parser, "command-property", "consumer-property", "a setting of the consumer")
    add_files(parser, "command-config", "consumer.config", "settings of the consumer")


def run(arguments: argparse.Namespace) -> int:
    """Print records until an option, a signal or the reader of the output ends it; returns 0."""
    _check(arguments)
    formatter = find_formatter(arguments.formatter, _formatter_properties(arguments), as_json=arguments.json)
    output = Output(formatter, skips=arguments.skip_message_on_error)
    before = signal.signal(signal.SIGTERM, lambda *_: _interrupt())
    try:
        return _print_all(arguments, output)
    except (ClientError, ConfigError) as error:
        raise CommandError(str(error)) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        print(f"Processed a total of {output.records} messages", file=sys.stderr)
        if arguments.enable_systest_events:
            print("shutdown_complete", flush=True)


def _interrupt() -> None:
    raise KeyboardInterrupt


def _print_all(arguments: argparse.Namespace, output: Output) -> int:
    properties = _consumer_properties(arguments)
    left = _UNBOUNDED if arguments.max_messages is None else arguments.max_messages
    with open_reading(arguments, properties) as reading:
        last = time.monotonic()
        while output.records < left:
            try:
                came = output.print_next(reading, left - output.records, _wait_s(arguments.timeout_ms, last))
            except BrokenPipeError:
                _leave_output()
                return 0
            if came:
                last = time.monotonic()
            elif arguments.timeout_ms is not None and (time.monotonic() - last) * 1000 > arguments.timeout_ms:
                said = "ERROR Error processing message, terminating consumer process: no record came within"
                print(f"{said} --timeout-ms {arguments.timeout_ms}", file=sys.stderr)
                return 0
    return 0


def _wait_s(timeout_ms: int | None, last: float) -> float:
    if timeout_ms is None:
        return _TICK_S
    return min(_TICK_S, max(0.0, last + timeout_ms / 1000 - time.monotonic()) + 0.001)


def _leave_output() -> None:
    """The reader of the output has gone, as in `| head`: what Python flushes at its end goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Output:
    """Writes records, and counts them."""

    def __init__(self, formatter: Formatter, *, skips: bool) -> None:
        self._formatter, self._skips = formatter, skips
        self._out = sys.stdout.buffer
        self.records = 0

    def print_next(self, reading: Reading, most: int, wait_s: float) -> bool:
        """Write the next records; whether any came. Raises CommandError for one that cannot be shown."""
        if self._formatter.show is not None:
            records = reading.poll(wait_s, min(most, _POLLED))
            for record in records:
                self._show(record)
            self._out.flush()
            return bool(records)
        assert self._formatter.layout is not None
        formatted = reading.format(self._formatter.layout, wait_s, most, _BLOCK_BYTES)
        if formatted is None:
            return False
        self.records += formatted.records
        self._out.write(lay_out(formatted.text) if self._formatter.pretty else formatted.text)
        self._out.flush()
        if formatted.log:
            sys.stderr.buffer.write(formatted.log)
        if formatted.failure is not None:
            offset, detail = formatted.failure
            self._fail(f"{formatted.topic}-{formatted.partition} offset {offset}: {detail}")
        return True

    def _show(self, record: Record) -> None:
        self.records += 1
        assert self._formatter.show is not None
        try:
            self._out.write(self._formatter.show(record))
        except UndecodedError as error:
            self._fail(f"Could not read record at offset {record.offset} due to: {error}")

    def _fail(self, what: str) -> None:
        if not self._skips:
            raise CommandError(f"Error processing message: {what}")
        print(f"ERROR Error processing message, skipping this message: {what}", file=sys.stderr)


def _check(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together, in Kafka's words; raises CommandError."""
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
    """Return the consumer's settings, the command line's before a file's; raises CommandError."""
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
    # The servers are those of the option, whatever a file of settings says.
    properties.pop("bootstrap.servers", None)
    return properties
