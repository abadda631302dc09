"""Handlers of records that a task cannot deserialize, process or send (KIP-161, KIP-210, KIP-1033, KIP-1034).

A handler is a function `(context, error) -> Response`. It returns `FAIL` or `CONTINUE`, with records for a dead letter
queue. Owns the handlers and the format of dead letters. Sends nothing.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import msgspec

from pybroker.streams.records import Headers
from pybroker.streams.runtime.collector import ProducedRecord

EXCEPTION, MESSAGE, STACKTRACE = "__streams.errors.exception", "__streams.errors.message", "__streams.errors.stacktrace"
TOPIC, PARTITION, OFFSET = "__streams.errors.topic", "__streams.errors.partition", "__streams.errors.offset"


class ErrorContext(msgspec.Struct, frozen=True):
    """Where an error happened (`ErrorHandlerContext`), and the record as bytes.

    `topic` is None, `partition` and `offset` are -1 for a punctuator. `timestamp` is in milliseconds.
    """

    task_id: str
    node: str
    topic: str | None
    partition: int
    offset: int
    timestamp: int
    key: bytes | None = None
    """The key of the consumed record, or of the record that could not be sent."""
    value: bytes | None = None
    headers: Headers = ()
    record: Any = None
    """The `Record` that the node received; None if the record could not be deserialized."""


class Response(msgspec.Struct, frozen=True):
    """The decision of a handler."""

    continues: bool
    """Whether the task skips the record and continues. Otherwise the error reaches the uncaught exception handler."""
    dead_letters: tuple[ProducedRecord, ...] = ()
    """Records that the task sends with its next commit."""


FAIL = Response(continues=False)
CONTINUE = Response(continues=True)

ExceptionHandler = Callable[[ErrorContext, Exception], Response]


def log_and_fail(_context: ErrorContext, _error: Exception) -> Response:
    """Return `FAIL`. The error is logged by the thread that stops."""
    return FAIL


def log_and_continue(_context: ErrorContext, _error: Exception) -> Response:
    """Return `CONTINUE`. The task logs the skipped record."""
    return CONTINUE


class Handlers(msgspec.Struct, frozen=True):
    """The handlers of an application, with Kafka's defaults."""

    deserialization: ExceptionHandler = log_and_fail
    """`deserialization.exception.handler`"""
    processing: ExceptionHandler = log_and_fail
    """`processing.exception.handler`"""
    production: ExceptionHandler = log_and_fail
    """`production.exception.handler`: for records that cannot be serialized or sent."""
    dead_letter_topic: str | None = None
    """`errors.dead.letter.queue.topic.name`: receives each record that a named handler decides about."""

    def decide(self, handler: ExceptionHandler, context: ErrorContext, error: Exception) -> Response:
        """Return the response of a handler. The handlers of this module write dead letters if there is a topic."""
        response = handler(context, error)
        if self.dead_letter_topic is None or handler not in (log_and_fail, log_and_continue):
            return response
        return Response(response.continues, (dead_letter(self.dead_letter_topic, context, error),))


def dead_letter(topic: str, context: ErrorContext, error: Exception) -> ProducedRecord:
    """Return the record for a dead letter queue: the bytes of the record, its headers, and headers of the error."""
    trace = "".join(traceback.format_exception(error))
    headers = (
        *context.headers,
        (EXCEPTION, f"{type(error).__module__}.{type(error).__qualname__}".encode()),
        (MESSAGE, str(error).encode()),
        (STACKTRACE, trace.encode()),
        (TOPIC, None if context.topic is None else context.topic.encode()),
        (PARTITION, str(context.partition).encode()),
        (OFFSET, str(context.offset).encode()),
    )
    return ProducedRecord(topic, context.key, context.value, context.timestamp, headers)
