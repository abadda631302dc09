from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybroker.cli.errors import CommandError
from pybroker.cli.main import main
from pybroker.cli.reassign_partitions import listed
from pybroker.cli.reassignment_file import build_file, check_executable, parse_plan
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.log_dirs import Replica
from pybroker.client.administration.topics import BROKER, TOPIC, NewTopic, Reassignment, TopicPartition
from pybroker.testing import Broker

ORDERS = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 2), NewTopic("others", 1)])
        yield broker.bootstrap_servers


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "reassignment.json"


def reassign(server: str, *arguments: str) -> int:
    return main(["reassign-partitions", "--bootstrap-server", server, *arguments])


def text_of(*partitions: dict[str, Any]) -> str:
    return json.dumps({"version": 1, "partitions": partitions})


def item(partition: int = 0, topic: str = "orders", replicas: tuple[int, ...] = (1,), **more: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": replicas, **more}


def test_replicas_that_are_there_are_taken_and_verified(
    server: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text_of(item(1), item(0, "others"), item(0)))
    assert reassign(server, "--execute", "--reassignment-json-file", str(file)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Current partition replica assignment"
    assert [part["topic"] for part in json.loads(lines[2])["partitions"]] == ["orders", "orders", "others"]
    assert lines[-1] == "Successfully started partition reassignments for orders-0,orders-1,others-0"
    assert reassign(server, "--verify", "--preserve-throttles", "--reassignment-json-file", str(file)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Status of partition reassignment:",
        *(f"Reassignment of partition {name} is completed." for name in ("orders-0", "orders-1", "others-0")),
        "",
    ]


def test_another_number_of_replicas_is_refused_where_the_option_says_so(
    server: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text_of(item(0), item(1, replicas=())))
    plan = ("--reassignment-json-file", str(file))
    assert reassign(server, "--execute", "--disallow-replication-factor-change", *plan) == 1
    assert capsys.readouterr().err.endswith("Partition replica list cannot be empty\n")
    file.write_text(text_of(item(0), item(1)))
    assert reassign(server, "--execute", "--disallow-replication-factor-change", *plan) == 0
    assert reassign(server, "--list", "--disallow-replication-factor-change") == 1
    refused = 'Option "[disallow-replication-factor-change]" can\'t be used with action "[list]"'
    assert refused in capsys.readouterr().err


def test_controllers_are_asked_where_they_can_answer(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(text_of(item(0)))
    at = ("reassign-partitions", "--bootstrap-controller", "127.0.0.1:1")
    for action in ("--execute", "--verify"):
        assert main([*at, action, "--reassignment-json-file", str(file)]) == 1
        refused = f'Option "[bootstrap-controller]" can\'t be used with action "[{action.removeprefix("--")}]"'
        assert refused in capsys.readouterr().err


def test_what_is_not_there_is_verified_as_such(server: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(
        text_of(
            item(0, log_dirs=["/elsewhere"]),
            item(9, log_dirs=["/elsewhere"]),
            item(0, "gone", replicas=(2, 3)),
            item(1, replicas=(1, 7)),
        )
    )
    with Admin(server) as admin:
        (path,) = admin.describe_log_dirs([1])[1]
    assert reassign(server, "--verify", "--preserve-throttles", "--reassignment-json-file", str(file)) == 0
    rather = "There is no active reassignment of partition"
    assert capsys.readouterr().out.splitlines() == [
        "Status of partition reassignment:",
        f"{rather} gone-0, but replica set is  rather than 2,3.",
        "Reassignment of partition orders-0 is completed.",
        f"{rather} orders-1, but replica set is 1 rather than 1,7.",
        f"{rather} orders-9, but replica set is  rather than 1.",
        f"Partition orders-0 on broker 1 is not being moved from log dir {path} to /elsewhere.",
        (
            "Partition orders-9 is not found in any live log dir on broker 1. "
            "There is likely an offline log directory on the broker."
        ),
    ]


def test_nothing_is_in_progress_and_nothing_to_cancel_but_throttles(
    server: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reassign(server, "--list") == 0
    assert capsys.readouterr().out == "No partition reassignments found.\n"
    file.write_text(text_of(item(), item(1)))
    throttle = ("--replica-alter-log-dirs-throttle", "5000")
    plan = ("--reassignment-json-file", str(file))
    assert reassign(server, "--execute", *throttle, *plan) == 0
    assert "The replica-alter-dir throttle limit was set to 5000 B/s\n" in capsys.readouterr().out
    assert reassign(server, "--cancel", *plan) == 0
    assert capsys.readouterr().out == (
        "None of the specified partition reassignments are active.\n"
        "None of the specified partition moves are active.Clearing broker-level throttles on broker 1\n"
        "Clearing topic-level throttles on topic orders\n"
    )
    assert reassign(server, "--execute", "--replica-alter-log-dirs-throttle", "-1", *plan) == 0
    assert "throttle" not in capsys.readouterr().out
    with Admin(server) as admin:
        own = {BROKER: admin.describe_configs("1", BROKER), TOPIC: admin.describe_configs("orders")}
    assert not [name for entries in own.values() for name, entry in entries.items() if entry.source in {1, 2}]


@pytest.mark.parametrize(
    ("partitions", "words"),
    [
        ([item(replicas=(1, 9))], "Unknown broker id 9"),
        ([item(topic="gone")], "Topic gone not found."),
        ([item(7), item(8)], "Unable to find partition: orders-7, orders-8"),
        ([item(log_dirs=["/no/such"])], "Failed to alter dir for orders-0-1: org.apache.kafka.common.errors.LogDirNot"),
        ([], "Partition reassignment list cannot be empty"),
    ],
)
def test_what_cannot_be_executed_is_reported(
    server: str, file: Path, capsys: pytest.CaptureFixture[str], partitions: list[dict[str, Any]], words: str
) -> None:
    file.write_text(text_of(*partitions))
    assert reassign(server, "--execute", "--reassignment-json-file", str(file)) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--execute",), 'Missing required argument "[reassignment-json-file]"'),
        (("--list", "--reassignment-json-file", "x"), '"[reassignment-json-file]" can\'t be used with action "[list]"'),
        (
            ("--verify", "--reassignment-json-file", "x", "--replica-alter-log-dirs-throttle", "1"),
            'Option "[replica-alter-log-dirs-throttle]" can\'t be used with action "[verify]"',
        ),
        (
            ("--execute", "--reassignment-json-file", "x", "--preserve-throttles"),
            'Option "[preserve-throttles]" can\'t be used with action "[execute]"',
        ),
        (("--cancel", "--reassignment-json-file", "/nowhere"), "cannot read /nowhere: "),
    ],
)
def test_options_that_do_not_go_together_are_reported(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert reassign("nowhere:1", *arguments) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "The input string is not a valid JSON"),
        ("[]", "Expected JSON object, received []"),
        ('{"version": 2}', "Not supported version field value 2"),
        ('{"partitions": {}}', "Expected JSON array, received {}"),
        (text_of({"topic": "t", "partition": 0}), "No such field exists: `replicas`"),
        (text_of(item(replicas=("a",))), 'Expected `Integer` value, received "a"'),  # type: ignore[arg-type]
        (text_of(item(log_dirs=[1])), "Expected `String` value, received 1"),
        (
            text_of(item(replicas=(1, 2), log_dirs=["any"])),
            "Size of replicas list [1, 2] is different from size of log dirs list [any] for partition orders-0",
        ),
    ],
)
def test_a_file_that_is_no_plan_is_refused(text: str, words: str) -> None:
    with pytest.raises(CommandError) as refusal:
        parse_plan(text)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("partitions", "words"),
    [
        ([item(replicas=())], "Partition replica list cannot be empty"),
        (
            [item(), item(1), item(), item(1)],
            "Partition reassignment contains duplicate topic partitions: orders-0,orders-1",
        ),
        (
            [item(replicas=(1, 2, 1)), item(1), item(2, replicas=(3, 3))],
            (
                "Partition replica lists may not contain duplicate entries: orders-0 contains multiple entries for 1. "
                "orders-2 contains multiple entries for 3"
            ),
        ),
    ],
)
def test_a_plan_that_cannot_be_executed_anywhere_is_refused(partitions: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(CommandError) as refusal:
        check_executable(parse_plan(text_of(*partitions)))
    assert str(refusal.value) == words


def test_a_file_that_was_built_asks_for_what_it_was_built_of() -> None:
    paths = {Replica(ORDERS, 2): "/b"}
    plan = parse_plan(build_file({ORDERS: (2, 1)}, paths))
    assert plan.targets == [(ORDERS, [2, 1])]
    assert plan.paths == paths
    assert parse_plan("{}").targets == []


def test_reassignments_in_progress_are_listed_by_topic_and_number() -> None:
    ongoing = {
        TopicPartition("t", 10): Reassignment((1, 2), (), (2,)),
        TopicPartition("t", 9): Reassignment((3, 1, 2), (3,), (1, 2)),
    }
    assert listed(ongoing).splitlines() == [
        "Current partition reassignments:",
        "t-9: replicas: 3,1,2. adding: 3. removing: 1,2.",
        "t-10: replicas: 1,2. removing: 2.",
    ]
