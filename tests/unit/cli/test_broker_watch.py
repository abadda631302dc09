from __future__ import annotations

import pytest

from pybroker.cli import broker_watch
from pybroker.cli.broker_watch import BrokerWatch
from pybroker.testing import Broker
from tests.support.conditions import wait_until

NO_SERVER = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_watch, "_WARNS_AFTER_S", 0.0)
    monkeypatch.setattr(broker_watch, "_POLL_INTERVAL_S", 0.01)


def test_it_is_said_once_for_a_call_that_no_broker_answers(capsys: pytest.CaptureFixture[str]) -> None:
    reported = ""

    def is_reported(times: int) -> bool:
        nonlocal reported
        reported += capsys.readouterr().err
        return reported.count("\n") == times

    with BrokerWatch(NO_SERVER, {"max.block.ms": "60000", "linger.ms": "5"}) as watch:
        watch.begin()
        wait_until(lambda: is_reported(1), within=60, what="said once")
        watch.end()
        watch.begin()
        wait_until(lambda: is_reported(2), within=60, what="said twice")
    for line in reported.splitlines():
        assert line.startswith(f"no broker answered: {NO_SERVER}: ")
        assert "; trying again for " in line
        assert line.endswith(" s (max.block.ms=60000)")


def test_nothing_is_said_where_a_broker_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    responses: list[object] = []
    query = BrokerWatch._query

    def query_and_note(watch: BrokerWatch) -> object:
        responses.append(query(watch))
        return responses[-1]

    monkeypatch.setattr(BrokerWatch, "_query", query_and_note)
    with Broker() as broker, BrokerWatch(broker.bootstrap_servers, {}) as watch:
        watch.begin()
        wait_until(lambda: responses, within=60, what="asked")
    assert responses == [None]
    assert capsys.readouterr().err == ""
