from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybroker.cli.delete_records import parse_offsets
from pybroker.cli.errors import CommandError
from pybroker.cli.main import main
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import NewTopic, TopicPartition
from pybroker.client.producing.producer import Producer
from pybroker.testing import Broker


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 2)])
        with Producer(broker.bootstrap_servers) as producer:
            for partition in (0, 0, 1):
                producer.send("orders", b"v", partition=partition)
            producer.flush()
        yield broker.bootstrap_servers


def item(partition: int, offset: int) -> dict[str, Any]:
    return {"topic": "orders", "partition": partition, "offset": offset}


def test_records_are_deleted_and_the_log_start_is_printed(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [item(0, -1), item(1, 5)], "version": 1}))
    assert main(["delete-records", "--bootstrap-server", server, "--offset-json-file", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Executing records delete operation",
        "Records delete operation completed:",
        "partition: orders-0\tlow_watermark: 2",
        (
            "partition: orders-1\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException: "
            "The requested offset is not within the range of offsets maintained by the server."
        ),
    ]


def test_a_partition_that_is_not_there_does_not_keep_the_others_from_it(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [item(7, 1), item(1, 1), {**item(0, 1), "topic": "nothing"}]}))
    assert main(["delete-records", "--bootstrap-server", server, "--offset-json-file", str(file)]) == 0
    unknown = "error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException:"
    assert capsys.readouterr().out.splitlines()[2:] == [
        f"partition: nothing-0\t{unknown} This server does not host this topic-partition.",
        "partition: orders-1\tlow_watermark: 1",
        f"partition: orders-7\t{unknown} The topic 'orders' has 2 partitions.",
    ]


def test_a_file_that_is_not_there_is_reported(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delete-records", "--bootstrap-server", server, "--offset-json-file", "/nowhere"]) == 1
    assert capsys.readouterr().err.startswith("pybroker delete-records: cannot read /nowhere: ")


def test_a_file_names_offsets_by_partition() -> None:
    text = json.dumps({"partitions": [item(0, 3), item(1, -1)]})
    assert parse_offsets(text) == {TopicPartition("orders", 0): 3, TopicPartition("orders", 1): -1}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "The input string is not a valid JSON"),
        ({"version": 2, "partitions": []}, "Not supported version field value 2"),
        ({"version": 1}, "Missing partitions field"),
        ({"partitions": [item(0, 1), item(0, 2)]}, "Offset json file contains duplicate topic partitions: orders-0"),
        ([], "Expected JSON object, received []"),
        ("null", "Expected JSON object, received null"),
        ({"version": "1", "partitions": []}, 'Expected `Integer` value, received "1"'),
        ({"version": None, "partitions": []}, "Expected `Integer` value, received null"),
        ("[" * 100_000, "The input string is not a valid JSON"),
        ({"partitions": 5}, "Expected JSON array, received 5"),
        ({"partitions": None}, "Expected JSON array, received null"),
        ({"partitions": [[]]}, "Expected JSON object, received []"),
        ({"partitions": [{"topic": "orders"}]}, "No such field exists: `partition`"),
        ({"partitions": [item(0, 1) | {"offset": 1.5}]}, "Expected `Long` value, received 1.5"),
        ({"partitions": [item(0, 10**23)]}, f"Expected `Long` value, received {10**23}"),
        ({"partitions": [item(10**11, 1)]}, f"Expected `Integer` value, received {10**11}"),
        ({"partitions": [item(0, 1) | {"topic": True}]}, "Expected `String` value, received true"),
    ],
)
def test_a_file_that_makes_no_sense_is_reported(content: object, words: str) -> None:
    with pytest.raises(CommandError) as refusal:
        parse_offsets(content if isinstance(content, str) else json.dumps(content))
    assert words in str(refusal.value)


def test_a_document_has_every_partition(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [item(1, 0), item(0, 99)], "version": 1}))
    assert main(["delete-records", "--bootstrap-server", server, "--offset-json-file", str(file), "--json"]) == 0
    bad, good = json.loads(capsys.readouterr().out)
    assert (bad["partition"], bad["lowWatermark"]) == (0, None)
    assert "OffsetOutOfRangeException" in bad["error"]
    assert (good["topic"], good["partition"], good["error"]) == ("orders", 1, None)
