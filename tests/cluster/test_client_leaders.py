"""Producers and fetchers where leaders change: what answers say is enough, and a silent broker is not waited for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pyarrow
import pytest

from pybroker.client import ColumnFetcher, Fetcher, Producer, TopicPartition
from pybroker.client.consuming.fetcher import Record
from pybroker.client.errors import LogTruncationError
from pybroker.protocol.messages.produce import ProduceRequest
from tests.support.conditions import wait_until
from tests.support.scripted_node import NEWEST, ScriptedNode

T0 = TopicPartition("t", 0)
PRODUCE, FETCH, METADATA = 0, 1, 3
PATIENT = {"retry.backoff.ms": "20000", "retry.backoff.max.ms": "20000", "reconnect.backoff.ms": "10"}
"""What goes on within a test's time has not waited for a back-off."""
QUICK = {"retry.backoff.ms": "10", "retry.backoff.max.ms": "50", "reconnect.backoff.ms": "10"}
Pair = tuple[ScriptedNode, ScriptedNode]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Node 1 leads, and node 2 has the same log."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(ScriptedNode(node=n, served=NEWEST)) for n in (1, 2))
        first.others = [second]
        second.others = [first]
        yield first, second
        for node in (first, second):
            node.hangs.set()


def fill(*nodes: ScriptedNode, values: range = range(4)) -> None:
    """Have nodes hold a batch for each value, in epoch 0."""
    with ScriptedNode(node=9) as source, Producer(source.bootstrap_servers, {"linger.ms": "0"}) as producer:
        source.leader = 9
        for value in values:
            producer.send("t", str(value).encode()).result(60)
        raw = [(base, count, bytes(batch)) for base, count, batch in source._log]
    for node in nodes:
        for base, count, batch in raw:
            node.hold(values.start + base, count, _at(values.start + base, batch, node.epoch))


def _at(base: int, raw: bytes, epoch: int) -> bytes:
    return base.to_bytes(8, "big") + raw[8:12] + epoch.to_bytes(4, "big") + raw[16:]


def read(fetcher: Fetcher, count: int) -> list[Record]:
    """So many records."""
    records: list[Record] = []
    deadline = time.monotonic() + 60
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records came"
        records += fetcher.poll(0.2)
    return records


def test_a_batch_goes_to_the_leader_that_the_answer_names_without_asking_for_metadata(pair: Pair) -> None:
    first, second = pair
    first.hint, second.epoch = second, 1
    with Producer(first.bootstrap_servers, PATIENT) as producer:
        assert producer.send("t", b"a").result(60).offset == 0
        assert producer.metrics()["leader-changes-total"] == 1
    assert (len(second.received), second.requested[METADATA], first.requested[METADATA]) == (1, 0, 1)


def test_reading_goes_on_at_the_leader_that_the_answer_names(pair: Pair) -> None:
    first, second = pair
    first.hint, second.epoch = second, 1
    fill(second)
    with Fetcher(first.bootstrap_servers, PATIENT) as fetcher:
        fetcher.assign({T0: 0})
        assert [record.value for record in read(fetcher, 4)] == [b"0", b"1", b"2", b"3"]
    assert (first.seen[FETCH], second.requested[METADATA]) == ({18}, 0)


def test_a_silent_leader_is_not_waited_for_once_another_leads(pair: Pair) -> None:
    first, second = pair
    with Producer(first.bootstrap_servers, QUICK) as producer:
        producer.send("t", b"a").result(60)
        # Metadata may be asked for already, where the answer to "a" was slow: the batch would wait behind it, unread.
        first.hangs_at = (ProduceRequest,)
        first.hangs.clear()
        sent = producer.send("t", b"b")
        wait_until(lambda: first.requested[PRODUCE] == 2, within=60, what="the batch is at the silent leader")
        second.leader, second.epoch = 2, 1
        second._offset, second._sequences = 1, {(1, 0): 1}
        assert sent.result(60).offset == 1
    assert [batch.sequence for batch in second.received] == [1]


def test_a_consumer_with_a_rack_reads_where_the_leader_says_and_comes_back_for_an_error(pair: Pair) -> None:
    first, second = pair
    first.prefers = second
    fill(first, second)
    with Fetcher(first.bootstrap_servers, {**QUICK, "client.rack": "r2"}) as fetcher:
        fetcher.assign({T0: 0})
        read(fetcher, 4)
        assert set(first.racks) == {"r2"}
        requested = first.requested[FETCH]
        first.prefers = None
        fill(first, values=range(4, 8))
        assert fetcher.poll(0.2) == []
        assert first.requested[FETCH] == requested, "it reads from the other for its time"
        second.fetch_error = 1
        assert [record.offset for record in read(fetcher, 4)] == [4, 5, 6, 7]
        assert first.requested[2] == 0, "out of range at a replica is no reason to reset"


def test_a_replica_that_is_gone_is_left_for_the_leader(pair: Pair) -> None:
    first, second = pair
    first.prefers = second
    fill(first, second)
    with Fetcher(first.bootstrap_servers, {**PATIENT, "client.rack": "r2"}) as fetcher:
        fetcher.assign({T0: 0})
        read(fetcher, 4)
        first.prefers = None
        fill(first, values=range(4, 6))
        second.close_connections()
        assert [record.offset for record in read(fetcher, 2)] == [4, 5]


def test_what_was_cut_is_read_anew_from_where_the_logs_part(pair: Pair) -> None:
    first, _ = pair
    fill(first)
    with Fetcher(first.bootstrap_servers, {**QUICK, "auto.offset.reset": "earliest"}) as fetcher:
        fetcher.assign({T0: 0})
        read(fetcher, 4)
        first.lead_anew(2)
        fill(first, values=range(2, 6))
        assert [(record.offset, record.leader_epoch) for record in read(fetcher, 4)] == [(n, 1) for n in range(2, 6)]


def test_without_a_reset_what_was_cut_is_an_error_until_seek(pair: Pair) -> None:
    first, _ = pair
    fill(first)
    with ColumnFetcher(first.bootstrap_servers, {**QUICK, "auto.offset.reset": "none"}) as fetcher:
        fetcher.assign({T0: 0})
        rows = 0
        while rows < 4:
            taken = fetcher.take(5, columns=["offset"])
            assert taken is not None
            rows += pyarrow.record_batch(taken).num_rows
        first.lead_anew(2)
        fill(first, values=range(2, 6))
        with pytest.raises(LogTruncationError, match=r"t-0: the log differs from offset 2 .* position 4") as ended:
            fetcher.take(10)
        parts = ended.value.divergent[T0]
        assert parts is not None
        assert (parts.offset, parts.leader_epoch) == (2, 0)
        fetcher.seek(T0, parts.offset)
        taken = fetcher.take(5, columns=["offset"])
        assert taken is not None
        assert pyarrow.record_batch(taken).column(0).to_pylist()[0] == 2


@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
def test_a_broker_that_asks_for_it_sends_clients_back_to_the_bootstrap_servers(pair: Pair, strategy: str) -> None:
    first, second = pair
    first.is_named, first.leader, second.leader, second.is_named = False, 2, 2, True
    second.others = []
    settings = {**QUICK, "metadata.recovery.strategy": strategy, "metadata.max.age.ms": "50"}
    with Producer(first.bootstrap_servers, settings) as producer:
        producer.send("t", b"a").result(60)
        wait_until(
            lambda: second.requested[METADATA] > 2, within=60, what="metadata is asked of the broker that is named"
        )
        second.metadata_error = 129
        requested = (first.requested[METADATA], second.requested[METADATA])
        wait_until(lambda: second.requested[METADATA] > requested[1] + 2, within=60, what="it is asked after the error")
        assert (first.requested[METADATA] > requested[0]) == (strategy == "rebootstrap")
        producer.send("t", b"b").result(60)


def test_metadata_that_does_not_come_sends_clients_back_to_the_bootstrap_servers(pair: Pair) -> None:
    first, second = pair
    first.is_named, first.leader, second.leader, second.others = False, 2, 2, []
    settings = {**QUICK, "metadata.recovery.rebootstrap.trigger.ms": "200", "metadata.max.age.ms": "50"}
    with Producer(first.bootstrap_servers, settings) as producer:
        producer.send("t", b"a").result(60)
        second.hangs.clear()
        requested = first.requested[METADATA]
        wait_until(lambda: first.requested[METADATA] > requested, within=60, what="the bootstrap server is asked")
        second.hangs.set()
        producer.send("t", b"b").result(60)
