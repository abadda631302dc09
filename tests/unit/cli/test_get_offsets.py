from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.cli.main import main
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import NewTopic
from pybroker.client.producing.producer import Producer
from pybroker.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 3), NewTopic("invoices", 1)])
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(4):
                producer.send("orders", b"v", partition=1, timestamp_ms=1000 * number)
            producer.flush()
        yield broker


def got(broker: Broker, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["get-offsets", "--bootstrap-server", broker.bootstrap_servers, *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def refused(broker: Broker, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["get-offsets", "--bootstrap-server", broker.bootstrap_servers, *arguments]) == 1
    return capsys.readouterr().err


def test_latest_offsets_of_every_partition_come_in_kafkas_form(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert got(broker, capsys) == ["invoices:0:0", "orders:0:0", "orders:1:4", "orders:2:0"]


@pytest.mark.parametrize(
    ("time", "lines"),
    [
        ("-2", ["orders:1:0"]),
        ("earliest", ["orders:1:0"]),
        ("max-timestamp", ["orders:1:3"]),
        ("1500", ["orders:1:2"]),
        ("9999", []),
        ("latest-tiered", []),
    ],
)
def test_times(broker: Broker, capsys: pytest.CaptureFixture[str], time: str, lines: list[str]) -> None:
    assert got(broker, capsys, "--topic", "orders", "--partitions", "1", "--time", time) == lines


@pytest.mark.parametrize(
    ("rules", "lines"),
    [
        ("orders:1", ["orders:1:4"]),
        ("orders:1-", ["orders:1:4", "orders:2:0"]),
        ("orders:-1,inv.*", ["invoices:0:0", "orders:0:0"]),
        (":0", ["invoices:0:0", "orders:0:0"]),
        ("orders:0-2", ["orders:0:0", "orders:1:4"]),
    ],
)
def test_rules_name_partitions(
    broker: Broker, capsys: pytest.CaptureFixture[str], rules: str, lines: list[str]
) -> None:
    assert got(broker, capsys, "--topic-partitions", rules) == lines


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--topic", "none"], "Could not match any topic-partitions with the specified filters"),
        (["--time", "99999999999999999999"], "Malformed time argument 99999999999999999999. Please use -1 or latest"),
        (["--topic-partitions", "orders:" + "9" * 5_000], "Invalid rule specification: orders:999"),
        (["--time", "soon"], "Malformed time argument soon. Please use -1 or latest / -2 or earliest"),
        (
            ["--partitions", "a"],
            "--partitions expects a comma separated list of numeric partition ids, but received: a",
        ),
        (["--topic-partitions", "a:b"], "Invalid rule specification: a:b"),
        (["--topic-partitions", "a", "--topic", "b"], "--topic-partitions cannot be used with --topic or --partitions"),
    ],
)
def test_what_makes_no_sense_is_reported_in_kafkas_words(
    broker: Broker, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    assert f"Error occurred: {text}" in refused(broker, capsys, *arguments)
