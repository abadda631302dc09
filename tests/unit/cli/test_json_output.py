"""Every command that prints a table prints the document that it declares with `--json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pybroker.cli.main import COMMANDS, main
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.producing.producer import Producer
from pybroker.testing import Broker
from tests.support.json_shapes import shape_fault

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
REQUESTED = [
    ("acls", "--list", ["--list"]),
    ("cluster", "cluster-id", ["cluster-id"]),
    ("cluster", "list-endpoints", ["list-endpoints"]),
    ("configs", "--describe", ["--describe", "--all", "--topic", "orders"]),
    ("configs", "--describe", ["--describe", "--entity-type", "broker-loggers", "--entity-name", "1"]),
    ("configs", "--describe of users, clients and ips", ["--describe", "--entity-type", "users"]),
    ("consumer-groups", "--list", ["--list"]),
    ("consumer-groups", "--describe", ["--describe", "--group", "readers"]),
    ("features", "describe", ["describe"]),
    ("get-offsets", "", ["--topic", "orders"]),
    ("groups", "--list", ["--list"]),
    ("log-dirs", "--describe", ["--describe"]),
    ("metadata-quorum", "describe", ["describe"]),
    ("reassign-partitions", "--list", ["--list"]),
    ("topics", "--list", ["--list"]),
    ("topics", "--describe", ["--describe", "--topic", "orders"]),
    ("transactions", "list", ["list"]),
    ("transactions", "describe-producers", ["describe-producers", "--topic", "orders", "--partition", "0"]),
    ("transactions", "find-hanging", ["find-hanging", "--topic", "orders"]),
]
SUBCOMMANDS_FIRST = {"cluster"}
EMPTY = {("reassign-partitions", "--list"), ("transactions", "list"), ("transactions", "find-hanging")}
"""What a broker has none of here."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker with something of each kind."""
    settings = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with Broker(properties=settings) as running, Admin(running.bootstrap_servers) as admin:
        admin.create_topics(["orders"])
        with Producer(running.bootstrap_servers) as producer:
            producer.send("orders", b"one").result()
        admin.alter_group_offsets("readers", {TopicPartition("orders", 0): 1})
        at = ["--bootstrap-server", running.bootstrap_servers]
        assert (
            main(["acls", *at, "--add", "--topic", "orders", "--allow-principal", "User:a", "--operation", "Read"]) == 0
        )
        quota = ["--alter", "--user", "a", "--add-config", "request_percentage=5"]
        assert main(["configs", *at, *quota]) == 0
        yield running


@pytest.mark.parametrize(("command", "action", "arguments"), REQUESTED)
def test_a_document_is_as_it_is_declared(
    broker: Broker, capsys: pytest.CaptureFixture[str], command: str, action: str, arguments: list[str]
) -> None:
    at = ["--bootstrap-server", broker.bootstrap_servers]
    ordered = [*arguments, *at] if command in SUBCOMMANDS_FIRST else [*at, *arguments]
    assert main([command, *ordered, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    module: Any = import_module(f"pybroker.cli.{command.replace('-', '_')}")
    assert shape_fault(document, module.JSON[action]) is None
    assert bool(document) is ((command, action) not in EMPTY)


def test_documents_of_log_directories_are_as_they_are_declared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c").write_text(f"log.dirs={tmp_path}/none\n")
    assert main(["storage-info", "-c", str(tmp_path / "c"), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert shape_fault(document, import_module("pybroker.cli.storage_info").JSON[""]) is None
    assert main(["log-cleaner", "--log-dirs", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("command", "arguments", "served"),
    [
        ("topics", ["--create", "--topic", "x"], "--list and --describe"),
        ("configs", ["--alter", "--topic", "x", "--add-config", "a=b"], "--describe"),
        ("acls", ["--add", "--topic", "x", "--allow-principal", "User:a"], "--list"),
        ("consumer-groups", ["--delete", "--group", "x"], "--list and --describe"),
    ],
)
def test_what_prints_no_document_refuses_the_option(
    capsys: pytest.CaptureFixture[str], command: str, arguments: list[str], served: str
) -> None:
    assert main([command, "--bootstrap-server", "127.0.0.1:1", *arguments, "--json"]) == 2
    assert capsys.readouterr().err == f"pybroker {command}: --json goes with {served} alone\n"


def test_every_shape_is_made_of_known_types() -> None:
    def types(shape: Any) -> set[str]:
        if isinstance(shape, str):
            return set(shape.split("|"))
        inner = shape if isinstance(shape, list) else shape.values()
        return set().union(*map(types, inner))

    shapes = [getattr(import_module(f"pybroker.cli.{name.replace('-', '_')}"), "JSON", {}) for name in COMMANDS]
    assert set().union(*map(types, shapes)) <= {"string", "integer", "number", "boolean", "null"}
    assert sum(map(bool, shapes)) >= 18
