"""A round of the suite `streams` against a broker: an application of pybroker.streams in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from pybench import streams_loads
from pybench.compare import VARIANTS
from pybench.peers.errors import PeerError
from pybroker.client import Admin, NewTopic
from pybroker.testing import Broker

RECORDS, SIZE = 2_000, 100


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker(properties=VARIANTS["pybroker-streams"]) as broker:
        yield broker.bootstrap_servers


def fill(servers: str, topic: str, properties: Mapping[str, object]) -> None:
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
        admin.wait_for_leaders(topic)
    streams_loads.fill(servers, topic, RECORDS, SIZE, properties)


def test_a_round_reports_its_figures_and_deletes_its_topics(servers: str) -> None:
    properties = {"row": "count", "records.per.key": 2, "commit.interval.ms": 100}
    fill(servers, "counted", properties)
    words, figures = streams_loads.measure("pybroker", servers, "counted", RECORDS, SIZE, properties)
    assert "commit.interval.ms=100" in words
    assert (figures["records"], figures["processed"]) == (RECORDS, RECORDS)
    assert RECORDS // 2 <= figures["output_records"] <= RECORDS
    assert figures["seconds"] > 0
    with Admin(servers) as admin:
        assert not [name for name in admin.list_topics() if name.startswith("pybroker-count-")]


def test_a_round_of_column_expressions_has_the_output_of_callables(servers: str) -> None:
    fill(servers, "filtered", {"row": "stateless"})
    for side in ("pybroker", "columns"):
        _, figures = streams_loads.measure(side, servers, "filtered", RECORDS, SIZE, {"row": "stateless"})
        assert (figures["processed"], figures["output_records"]) == (RECORDS, RECORDS // 2)


def test_an_output_with_other_sums_fails_the_round(servers: str) -> None:
    fill(servers, "other", {"row": "count", "records.per.key": 2})
    with pytest.raises(PeerError, match=r"'keys': 1000, 'sum': 2000\}, expected \{'keys': 500, 'sum': 2000\}"):
        streams_loads.measure("pybroker", servers, "other", RECORDS, SIZE, {"row": "count", "records.per.key": 4})


def test_a_restored_store_has_every_record_of_the_changelog(servers: str) -> None:
    properties = {"row": "restore"}
    fill(servers, "table", properties)
    _, figures = streams_loads.measure("pybroker", servers, "table", RECORDS, SIZE, properties)
    assert (figures["restored"], figures["found"]) == (RECORDS, 1000)
    streams_loads.delete_topics(servers, "table")
    with Admin(servers) as admin:
        assert not [name for name in admin.list_topics() if name.startswith("restore-")]
