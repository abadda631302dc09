"""Claims about `pybroker_spark.load.board`: what the driver knows of tasks by what they have reported, and no more."""

from __future__ import annotations

import itertools

import pytest

from pybroker.client import LatencyHistogram
from pybroker_spark.load import Board, ConsumerPlan, Interval, LoadPlan, ProducerPlan, Result
from pybroker_spark.load.board import ENDED, TRANSITIONS

PRODUCER = ProducerPlan(bootstrap_servers="b:9", properties={}, topic="t", record_size=100)
CONSUMER = ConsumerPlan(bootstrap_servers="b:9", properties={}, topic="t")
PLAN = LoadPlan(run=3, clients=(PRODUCER, PRODUCER, CONSUMER), tasks=2)


def interval(client: int, latencies_us: list[int], begin_s: float, phase: str = "steady") -> Interval:
    histogram = LatencyHistogram()
    for latency in latencies_us:
        histogram.record(latency, 1)
    role = PLAN.clients[client].role
    sums = (len(latencies_us), 100 * len(latencies_us), 0, sum(latencies_us), max(latencies_us, default=0))
    return Interval(client, client % 2, role, "t", phase, begin_s, begin_s + 1, *sums, histogram.encode())


def running() -> Board:
    board = Board(PLAN)
    for task in range(2):
        board.step(task, {"type": "hello", "host": f"host-{task}", "pid": 1})
    for client in range(3):
        board.step(client % 2, {"type": "ready", "client": client, "clock": 0.0})
    board.start()
    return board


def progress(client: int, records: int, end_s: float) -> dict[str, object]:
    outcomes = [["t", 0, records, 0]] if client < 2 else []
    return {"client": client, "records": records, "end_s": end_s, "outcomes": outcomes}


def ended(client: int, state: str, records: int, end_s: float) -> dict[str, object]:
    rest = {"state": state, "reason": "", "timed_out": False, "rebalance_s": 0.0, "disturbance": None}
    return {"type": "ended", **progress(client, records, end_s), **rest}


@pytest.mark.parametrize(("state", "after"), list(itertools.product(TRANSITIONS, TRANSITIONS)))
def test_a_client_goes_only_where_the_table_leads(state: str, after: str) -> None:
    (client, *_) = Board(PLAN).clients
    client.state = state
    if after in TRANSITIONS[state]:
        client.become(after, "why")
        assert (client.state, client.reason) == (after, "why")
    else:
        with pytest.raises(ValueError, match=f"client 0 cannot go from {state} to {after}"):
            client.become(after)
        assert client.state == state


def test_a_lost_task_keeps_what_it_had_measured() -> None:
    board = running()
    board.step(1, {"type": "interval", "interval": interval(1, [5, 7], 0.0).to_message()})
    board.step(1, {"type": "progress", **progress(1, 2, 1.0)})
    assert [standing.client for standing in board.lose(1, "killed")] == [1]
    board.step(0, {"type": "interval", "interval": interval(0, [9], 0.0).to_message()})
    board.step(0, ended(0, "stopped", 1, 1.5))
    board.step(0, ended(2, "done", 0, 1.5))
    assert board.lose(0, "closed") == []
    assert board.all_are(*ENDED)
    result = Result.of(board, 1.0, "task 1 was lost")
    assert [(c.state, c.reason, c.host) for c in result.clients][1] == ("lost", "killed", "host-1")
    assert not result.is_whole()
    total = result.total("producer")
    assert (total.records, total.seconds, total.latency_max_us, total.latencies.at_quantile(0.5)) == (3, 1.5, 9, 7)
    known = [(each.producer, each.acknowledged, each.complete) for each in result.acknowledged()]
    assert known == [(30000, 1, False), (30001, 2, False)]


def test_the_warm_up_is_in_the_total_and_not_in_the_steady_state() -> None:
    board = running()
    rows = [interval(0, [1000], 0.0, "warm-up"), interval(0, [10, 20], 1.0), interval(1, [30], 1.0)]
    for row in rows:
        board.step(row.task, {"type": "interval", "interval": row.to_message()})
    for client, at_s in ((0, 1.25), (1, 1.0)):
        board.step(client, {"type": "steady", "client": client, "at_s": at_s})
        board.step(client, ended(client, "done", 2, 3.0))
    result = Result.of(board, 1.0, "")
    assert (result.total("producer").records, result.total("producer").seconds) == (4, 3.0)
    steady = result.steady("producer")
    assert (steady.records, steady.seconds, steady.latency_max_us) == (3, 2.0, 30)


def test_a_row_is_the_same_when_it_has_travelled() -> None:
    row = interval(1, [1, 2, 3], 0.5)
    assert Interval.from_message(row.to_message()) == row
    assert row.latencies().count == 3


def test_clients_are_dealt_to_tasks_in_turns() -> None:
    assert [PLAN.clients_of(task) for task in range(2)] == [[0, 2], [1]]
    assert [standing.task for standing in Board(PLAN).clients] == [0, 1, 0]
