"""Loads of transactions, small, on a broker of ours: aborted ones are spread, and readers get what they should."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybench.loads import Task, prepare, run_load
from pybench.scenario import read_scenarios
from pybench.transactional_ids_load import measure_ids_load
from pybroker.client import Admin, NewTopic
from pybroker.testing import Broker

RECORDS, EACH = 1_000, 10


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    prepare(set())
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize(("percent", "aborted"), [(0, 0), (7, 7), (10, 10)])
def test_a_reader_of_committed_records_leaves_out_what_was_aborted(servers: str, percent: int, aborted: int) -> None:
    topic = f"aborted-{percent}"
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
        admin.wait_for_leaders(topic)
    task = Task(servers, topic, RECORDS, 100, {"each": EACH, "aborted.percent": percent})
    filled = run_load("c-transactions", task).figures
    assert (filled["transactions"], filled["aborted"]) == (RECORDS / EACH, aborted)
    received = {name: run_load(f"c-read-{name}", task).figures for name in ("committed", "uncommitted")}
    assert received["committed"]["received"] == RECORDS - aborted * EACH
    assert received["uncommitted"]["received"] == RECORDS
    # Both have passed the whole topic.
    assert {(one["records"], one["bytes"]) for one in received.values()} == {(RECORDS, RECORDS * 100)}


def test_what_is_ended_on_a_plain_socket_is_committed_each_record_once(servers: str) -> None:
    with Admin(servers) as admin:
        admin.create_topics([NewTopic("ended", 1, 1)])
        admin.wait_for_leaders("ended")
    figures = run_load("c-ends", Task(servers, "ended", 200, 100, {})).figures
    assert figures["transactions"] == 200
    assert 0 < figures["commit_p50_ms"] <= figures["commit_p99_ms"]
    # A hundred before they are timed.
    read = run_load("c-read-committed", Task(servers, "ended", 300, 100, {"each": 1, "aborted.percent": 0})).figures
    assert read["received"] == 300


def test_every_row_of_transactions_has_whole_ones() -> None:
    rows = [one for one in read_scenarios() if "each" in one.properties]
    assert len(rows) >= 8
    for row in rows:
        together = int(row.properties["each"]) * int(row.properties.get("producers", 1))
        assert row.records % together == row.quick_records % together == 0


def test_transactional_ids_are_all_there_after_a_restart() -> None:
    command, figures = measure_ids_load("pybroker", 600)
    assert command == "pybroker start"
    assert figures["records"] == 600
    assert figures["loaded_s"] > 0
