from __future__ import annotations

from typing import Any

import pytest

from pybroker.client.errors import ClientError, TransactionAbortableError
from pybroker.streams import CONTINUE, ErrorContext, Response
from pybroker.streams.application.collector import ProducerCollector
from pybroker.streams.columns.program import Output
from pybroker.streams.errors import StreamsError, TaskMigratedError
from pybroker.streams.exception_handlers import Handlers
from pybroker.streams.runtime.collector import ProducedRecord

CHANGELOG = "app-counts-changelog"


class Failing:
    """A producer that refuses every record."""

    def __init__(self, error: ClientError) -> None:
        self._error = error

    def send(self, record: ProducedRecord, partition: int, on_delivery: Any) -> Any:
        raise self._error

    def send_columns(self, rows: Any, topic: str) -> object:
        raise self._error

    def partitions(self, topic: str) -> int:
        return 1


def collector(error: ClientError, handlers: Handlers) -> ProducerCollector:
    return ProducerCollector(Failing(error), ("0_1", 1), {CHANGELOG}, handlers)


@pytest.mark.parametrize("topic", ["out", CHANGELOG])
def test_an_ended_transaction_migrates_the_task_without_a_handler(topic: str) -> None:
    seen: list[Exception] = []

    def continues(_context: ErrorContext, error: Exception) -> Response:
        seen.append(error)
        return CONTINUE

    failing = collector(TransactionAbortableError("INVALID_PRODUCER_EPOCH", 47), Handlers(production=continues))
    with pytest.raises(TaskMigratedError, match="transaction of task 0_1 cannot be committed: INVALID_PRODUCER_EPOCH"):
        failing.send(ProducedRecord(topic, b"k", b"v", 1, ()))
    assert seen == []


def test_a_record_that_cannot_be_sent_is_for_the_handler() -> None:
    record = ProducedRecord("out", b"k", b"v", 1, ())
    collector(ClientError("too large"), Handlers(production=lambda _context, _error: CONTINUE)).send(record)
    with pytest.raises(StreamsError, match="task 0_1 cannot send a record to topic out: too large"):
        collector(ClientError("too large"), Handlers()).send(record)


def test_rows_that_cannot_be_sent_are_an_error() -> None:
    with pytest.raises(StreamsError, match="task 0_1 cannot send rows to topic out: too large"):
        collector(ClientError("too large"), Handlers()).send_columns(Output("out", None))
    ended = collector(TransactionAbortableError("INVALID_PRODUCER_EPOCH", 47), Handlers())
    with pytest.raises(TaskMigratedError, match="transaction of task 0_1 cannot be committed: INVALID_PRODUCER_EPOCH"):
        ended.send_columns(Output("out", None))
