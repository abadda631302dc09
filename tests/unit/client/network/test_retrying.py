"""Calls that are tried again: on a clock that jumps, and against a broker whose faults are scripted."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pybroker.client import EARLIEST, LATEST, Admin, AsyncAdmin, AsyncConsumer, Fetcher, Producer, TopicPartition
from pybroker.client.errors import BrokerError, ConnectionLostError, UnreachableError
from pybroker.client.network.retrying import retry, time_left_ms
from pybroker.client.settings import ConnectionSettings
from pybroker.protocol.errors import ErrorCode
from tests.support.scripted_broker import DROP, ScriptedBroker
from tests.support.stepped_loop import run_stepped

SETTINGS = ConnectionSettings.from_properties({"bootstrap.servers": "h:1"})
QUICK = {"retry.backoff.ms": "1", "retry.backoff.max.ms": "5", "reconnect.backoff.ms": "1"}
T0 = TopicPartition("t", 0)
METADATA, LIST_OFFSETS, INIT_PRODUCER_ID = 3, 2, 22
NOT_LEADER, LOADING = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class Outage:
    """Nobody answers before a moment of the loop's clock."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.tries: list[float] = []

    async def query(self) -> str:
        now = asyncio.get_running_loop().time()
        self.tries.append(now)
        if now < self.until:
            raise ConnectionLostError("h:1: refused")
        return "answer"


def test_a_call_rides_out_thirty_seconds_without_a_broker(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(until=30.0)
    with caplog.at_level(logging.WARNING):
        assert run_stepped(retry(SETTINGS, outage.query)) == "answer"
    pauses = [after - before for before, after in zip(outage.tries, outage.tries[1:], strict=False)]
    assert [0.8 * wanted <= pause <= 1.2 * wanted for pause, wanted in zip(pauses, (0.1, 0.2, 0.4, 0.8), strict=False)]
    assert max(pauses) <= 1.0 + 1e-9
    assert 30.0 <= outage.tries[-1] <= 31.0
    assert len(caplog.records) == 1
    assert "h:1: refused; trying again for" in caplog.text


def test_a_call_ends_with_the_cause_when_its_time_is_over() -> None:
    outage = Outage(until=float("inf"))
    with pytest.raises(
        UnreachableError, match=r"h:1: refused; \d+ tries in (59|60)\d{3} ms \(default.api.timeout.ms=6"
    ):
        run_stepped(retry(SETTINGS, outage.query))
    assert outage.tries[-1] <= 60.0


def test_a_call_within_a_call_spends_the_time_of_the_outer_one() -> None:
    outage = Outage(until=float("inf"))

    async def outer() -> str:
        return await retry(SETTINGS, outage.query, timeout_ms=10_000)

    with pytest.raises(UnreachableError) as ended:
        run_stepped(retry(SETTINGS, outer, timeout_ms=2_000))
    assert str(ended.value).count("tries in") == 1
    assert outage.tries[-1] <= 2.0


def test_a_request_may_take_what_is_left_of_the_call() -> None:
    outage, left = Outage(until=50.0), list[int]()

    async def query() -> None:
        await outage.query()
        left.append(time_left_ms(30_000))

    async def calls() -> None:
        await retry(SETTINGS, query)
        left.append(time_left_ms(30_000))

    run_stepped(calls())
    assert left == [60_000 - round(outage.tries[-1] * 1000), 30_000]
    assert left[0] <= 10_000


def test_an_admin_without_a_broker_names_address_cause_and_time() -> None:
    async def query() -> None:
        async with AsyncAdmin("127.0.0.1:1,127.0.0.1:2") as admin:
            await admin.list_topics()

    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1: .*127\.0\.0\.1:2: .*; \d+ tries in (59|60)\d{3} ms"):
        run_stepped(query())


def test_answers_that_pass_are_asked_for_again() -> None:
    faults = {LIST_OFFSETS: [NOT_LEADER, DROP, NOT_LEADER], METADATA: [DROP]}
    with ScriptedBroker(faults=faults) as broker, Admin(broker.bootstrap_servers, QUICK) as admin:
        assert admin.list_offsets({T0: LATEST})[T0].offset == 0
        assert not any(broker.faults.values())


def test_an_answer_that_does_not_pass_is_raised_at_once() -> None:
    faults = {LIST_OFFSETS: [ErrorCode.TOPIC_AUTHORIZATION_FAILED]}
    with ScriptedBroker(faults=faults) as broker, Admin(broker.bootstrap_servers, QUICK) as admin:
        with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
            admin.list_offsets({T0: LATEST})
        assert broker.requested[LIST_OFFSETS] == 1


def test_a_producer_id_is_asked_for_until_it_comes() -> None:
    faults = {INIT_PRODUCER_ID: [LOADING, DROP]}
    with ScriptedBroker(faults=faults) as broker, Admin(broker.bootstrap_servers, QUICK) as admin:
        assert admin.new_producer_id() == (1, 0)


def test_a_leader_that_stays_away_is_reported_with_how_long_it_was_asked() -> None:
    async def query() -> None:
        raise BrokerError.of("h:1", "topic 't' partition 0", NOT_LEADER, None)

    with pytest.raises(BrokerError, match=r"NOT_LEADER.*; \d+ tries in (59|60)\d{3} ms \(default") as refused:
        run_stepped(retry(SETTINGS, query))
    assert refused.value.code == NOT_LEADER


def test_what_was_kept_open_and_closed_by_the_broker_is_opened_again() -> None:
    with ScriptedBroker() as broker:
        where = broker.bootstrap_servers
        with Admin(where, QUICK) as admin, Producer(where, QUICK) as producer, Fetcher(where, QUICK) as fetcher:
            for round_ in range(2):
                assert admin.list_offsets({T0: EARLIEST})[T0].offset == 0
                assert producer.send("t", b"x").result().offset == round_
                fetcher.assign({T0: round_})
                assert [record.offset for record in fetcher.poll(60)] == [round_]
                broker.close_connections()


async def test_a_consumer_asks_for_offsets_again() -> None:
    faults = {LIST_OFFSETS: [NOT_LEADER, DROP]}
    with ScriptedBroker(faults=faults) as broker:
        async with AsyncConsumer(broker.bootstrap_servers, QUICK) as consumer:
            assert await consumer.end_offsets(T0) == {T0: 0}
