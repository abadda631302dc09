from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybroker.cli.errors import CommandError
from pybroker.cli.leader_election import parse_partitions
from pybroker.cli.main import main
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import NewTopic, TopicPartition
from pybroker.testing import Broker


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 2)])
        yield broker.bootstrap_servers


def elect(server: str, *arguments: str, kind: str = "preferred") -> int:
    return main(["leader-election", "--bootstrap-server", server, "--election-type", kind, *arguments])


def item(partition: int) -> dict[str, Any]:
    return {"topic": "orders", "partition": partition}


@pytest.mark.parametrize("kind", ["preferred", "UNCLEAN"])
def test_a_partition_with_the_wanted_leader_is_no_failure(
    server: str, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    assert elect(server, "--topic", "orders", "--partition", "1", kind=kind) == 0
    assert capsys.readouterr().out == "Valid replica already elected for partitions orders-1\n"


def test_of_all_partitions_none_is_printed(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert elect(server, "--all-topic-partitions") == 0
    assert capsys.readouterr().out == ""


def test_a_partition_that_is_not_there_fails_beside_the_others(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [item(0), item(5), item(1)]}))
    assert elect(server, "--path-to-json-file", str(file), kind="unclean") == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "Valid replica already elected for partitions orders-0, orders-1",
        (
            "Error completing leader election (UNCLEAN) for partition: orders-5: "
            "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: No such partition as orders-5"
        ),
    ]
    assert printed.err == "pybroker leader-election: 1 replica(s) could not be elected\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "One and only one of the following options is required"),
        (("--topic", "orders", "--all-topic-partitions"), "One and only one of the following options is required"),
        (("--topic", "orders"), "Missing required option(s): partition"),
        (("--all-topic-partitions", "--partition", "1"), "Option partition is only allowed if topic is used"),
        (("--path-to-json-file", "/nowhere"), "cannot read /nowhere: "),
    ],
)
def test_options_that_do_not_go_together_are_reported(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert elect("nowhere:1", *arguments) == 1
    assert words in capsys.readouterr().err


def test_a_number_beyond_its_field_is_reported(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert elect(server, "--topic", "orders", "--partition", "99999999999") == 1
    assert capsys.readouterr().err == (
        "pybroker leader-election: ElectLeadersRequest: topic_partitions[0].partitions[0]: 99999999999: "
        "expected a whole number from -2147483648 to 2147483647\n"
    )


@pytest.mark.parametrize("content", [{"partitions": []}, {"version": 7, "partitions": []}])
def test_a_file_without_partitions_is_no_failure_whatever_its_version(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: dict[str, Any]
) -> None:
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps(content))
    assert elect(server, "--path-to-json-file", str(file)) == 0
    assert capsys.readouterr() == ("", "")


def test_a_file_names_partitions() -> None:
    text = json.dumps({"partitions": [item(0), item(1)]})
    assert parse_partitions(text) == [TopicPartition("orders", 0), TopicPartition("orders", 1)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "Replica election data is empty"),
        ({}, 'Replica election data is missing "partitions" field'),
        ([], "Expected JSON object, received []"),
        ("[" * 100_000, "Replica election data is empty"),
        (
            {"partitions": [item(0), item(1), item(0)]},
            "Replica election data contains duplicate partitions: [orders-0]",
        ),
        ({"partitions": 5}, "Expected JSON array, received 5"),
        ({"partitions": None}, "Expected JSON array, received null"),
        ({"partitions": [5]}, "Expected JSON object, received 5"),
        ({"partitions": [{"topic": "orders"}]}, "No such field exists: `partition`"),
        ({"partitions": [{"topic": "orders", "partition": "1"}]}, 'Expected `Integer` value, received "1"'),
        ({"partitions": [item(10**11)]}, f"Expected `Integer` value, received {10**11}"),
    ],
)
def test_a_file_that_makes_no_sense_is_reported(content: object, words: str) -> None:
    with pytest.raises(CommandError) as refusal:
        parse_partitions(content if isinstance(content, str) else json.dumps(content))
    assert words in str(refusal.value)
