"""`pybroker verifiable-producer`: sends increasing numbers, and prints the fate of each as JSON.

Owns the options and the events of kafka-verifiable-producer.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.broker_watch import BrokerWatch
from pybroker.cli.console_options import read_file
from pybroker.cli.errors import CommandError
from pybroker.cli.interrupts import Interrupts
from pybroker.cli.kafka_exceptions import java_class, java_words
from pybroker.client.errors import BrokerError, ClientError, ClosedError
from pybroker.client.producing.producer import Producer
from pybroker.protocol.kafka_json import json_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pybroker.client.producing.record_metadata import RecordMetadata

DESCRIPTION = "Produce increasing numbers to a topic, and print a JSON event for each that is acknowledged or failed."

_POLL_INTERVAL_S = 0.1
"""Seconds between two checks of the end of a wait."""
_EXCEPTION = "org.apache.kafka.common.KafkaException"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--topic", required=True, help="the topic to send to")
    add("--bootstrap-server", required=True, metavar="HOST:PORT", help="brokers to connect to")
    add("--max-messages", type=int, default=-1, metavar="COUNT", help="number of records; -1: until a signal (default)")
    add("--throughput", type=int, default=-1, metavar="RATE", help="maximum records per second; -1: no limit (default)")
    add("--acks", type=int, choices=(0, 1, -1), default=-1, help="the producer's acks (default: -1)")
    configs = parser.add_mutually_exclusive_group()
    configs.add_argument("--command-config", type=Path, metavar="FILE", help="client settings; options override them")
    configs.add_argument("--producer.config", type=Path, metavar="FILE", dest="producer_config", help="deprecated")
    add("--message-create-time", type=int, default=-1, metavar="MS", help="the time of the first record")
    add("--value-prefix", type=int, metavar="N", help="values are N.0, N.1, and so on")
    add("--repeating-keys", type=int, metavar="N", help="keys repeat from 0 to N - 1")


def run(arguments: argparse.Namespace) -> int:
    """Send until the number of records or a signal ends it. Returns 0, and after a signal its status."""
    if arguments.repeating_keys is not None and arguments.repeating_keys < 1:
        raise CommandError(f"--repeating-keys {arguments.repeating_keys}: must be at least 1")
    if arguments.producer_config is not None:
        old = "Option --producer.config has been deprecated and will be removed in a future version."
        print(f"{old} Use --command-config instead.", file=sys.stderr)
    properties = {"acks": str(arguments.acks), "retries": "0"}
    properties |= read_file(arguments.command_config or arguments.producer_config)
    properties.pop("bootstrap.servers", None)
    events, interrupts, begun = Events(arguments.topic), Interrupts(), time.time()
    try:
        with interrupts, Producer(arguments.bootstrap_server, properties) as producer:
            events.print("startup_complete")
            with BrokerWatch(arguments.bootstrap_server, properties) as watch, interrupts.held():
                _send_all(arguments, producer, events, watch, interrupts)
    except ClientError as error:
        raise CommandError(str(error)) from None
    events.raise_failure()
    events.print("shutdown_complete")
    rate = 1000 * events.acked / max(1.0, (time.time() - begun) * 1000)
    events.print(
        "tool_data",
        sent=events.sent,
        acked=events.acked,
        target_throughput=arguments.throughput,
        avg_throughput=rate,
    )
    events.raise_failure()
    return interrupts.status


class Events:
    """Prints events, one a line, from any thread."""

    def __init__(self, topic: str) -> None:
        self._topic, self._lock = topic, threading.Lock()
        self._failure: OSError | None = None
        self.sent = self.acked = 0

    @property
    def failed(self) -> bool:
        """Whether standard output has failed."""
        return self._failure is not None

    def raise_failure(self) -> None:
        """Raise the OSError of an event that could not be printed, where there is one."""
        if self._failure is not None:
            raise self._failure

    def print(self, name: str, **data: object) -> None:
        """Print an event with the current time; does nothing after a failure."""
        line = json_text({"timestamp": time.time_ns() // 1_000_000, "name": name, **data})
        with self._lock:
            if self._failure is None:
                try:
                    print(line, flush=True)
                except OSError as error:
                    # The client only logs the exception of a delivery callback, so the sending thread raises it.
                    self._failure = error

    def watch(self, key: str | None, value: str) -> Callable[[Exception | None, RecordMetadata], None]:
        """Return the delivery callback of a record."""

        def decided(error: Exception | None, metadata: RecordMetadata) -> None:
            if error is not None:
                return self.fail(key, value, error)
            self.acked += 1
            where = {"topic": metadata.topic, "partition": metadata.partition, "offset": metadata.offset}
            return self.print("producer_send_success", key=key, value=value, **where)

        return decided

    def fail(self, key: str | None, value: str, error: Exception) -> None:
        """Print the event of a record that was not acknowledged."""
        broker = isinstance(error, BrokerError)
        name = java_class(error.code) if isinstance(error, BrokerError) else _EXCEPTION
        message = java_words(error) if isinstance(error, BrokerError) and broker else str(error)
        self.print(
            "producer_send_error",
            exception=f"class {name}",
            message=message,
            topic=self._topic,
            key=key,
            value=value,
        )


def _send_all(
    arguments: argparse.Namespace, producer: Producer, events: Events, watch: BrokerWatch, interrupts: Interrupts
) -> None:
    """Send until the number of records, a signal or standard output ends it; called with signals delayed."""
    numbers = itertools.count() if arguments.max_messages < 0 else range(arguments.max_messages)
    created = None if arguments.message_create_time == -1 else arguments.message_create_time
    begun = time.monotonic()
    for number in numbers:
        if interrupts.arrived or events.failed:
            return
        key = None if arguments.repeating_keys is None else str(number % arguments.repeating_keys)
        value = str(number) if arguments.value_prefix is None else f"{arguments.value_prefix}.{number}"
        events.sent += 1
        watch.begin()
        try:
            producer.send(
                arguments.topic,
                value.encode(),
                None if key is None else key.encode(),
                timestamp_ms=created,
                on_delivery=events.watch(key, value),
            )
        except ClientError as error:
            events.fail(key, value, error)
        except KeyboardInterrupt:
            # The call waits for a broker, and a signal was delayed. The message is that of Kafka's tool.
            events.fail(key, value, ClosedError("Producer closed while send in progress"))
            return
        finally:
            watch.end()
        if created is not None:
            created += int((time.monotonic() - begun) * 1000)
        if arguments.throughput > 0:
            _wait(begun + (number + 1) / arguments.throughput, events, interrupts)


def _wait(until: float, events: Events, interrupts: Interrupts) -> None:
    while (left := until - time.monotonic()) > 0 and not (interrupts.arrived or events.failed):
        time.sleep(min(left, _POLL_INTERVAL_S))
