"""The tests' own audit: librdkafka reads beside our reader, so that a fault of the reader is no result of an audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pybroker.client import ColumnFetcher, Producer
from pybroker.testing import Broker
from tests.support import stamped
from tests.support.stamped import audited, send_stamped


class _Taken:
    """Columns without their last row, as a reader that loses one has them."""

    def __init__(self, taken: Any) -> None:
        self.next_offset, self._batch = taken.next_offset, pa.record_batch(taken)

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._batch.slice(0, max(0, self._batch.num_rows - 1)).__arrow_c_array__(requested_schema)


class _LosingFetcher(ColumnFetcher):
    def take(self, *arguments: Any, **named: Any) -> Any:
        taken = super().take(*arguments, **named)
        return None if taken is None else _Taken(taken)


def test_both_readers_find_the_same_records(broker: Broker, make_topic: Callable[..., str]) -> None:
    topic = make_topic(2)
    expected = send_stamped(broker.bootstrap_servers, topic, [0, 1], 2_500)
    for committed in (False, True):
        report = audited(broker.bootstrap_servers, topic, expected, committed=committed)
        assert (report.is_exactly_once, report.records) == (True, 5_000)


def test_neither_reader_finds_aborted_records(broker: Broker, make_topic: Callable[..., str]) -> None:
    topic = make_topic(1)
    with Producer(broker.bootstrap_servers, {"transactional.id": topic}) as producer:
        producer.init_transactions()
        for ends in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for number in range(10):
                producer.send(topic, stamped.stamped_values(1, number, 1), partition=0)
            producer.flush()  # an abort drops what is not sent yet
            ends()
    assert audited(broker.bootstrap_servers, topic, committed=True).records == 10
    assert audited(broker.bootstrap_servers, topic).records == 20


def test_a_record_that_our_reader_loses_is_no_loss_of_the_topic(
    broker: Broker, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(1)
    send_stamped(broker.bootstrap_servers, topic, [0], 100)
    monkeypatch.setattr(stamped, "ColumnFetcher", _LosingFetcher)
    with pytest.raises(
        AssertionError, match=r"has 99 records below offset 100 and librdkafka 100; the first that .*99"
    ):
        audited(broker.bootstrap_servers, topic)
