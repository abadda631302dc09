"""`pybroker acls` beside Kafka's kafka-acls on the same server: the same entries, and the same lines for them.

Kafka's tool prints entries in the order of a hash table, so that lines are compared as a set.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.peers import java
from tests.conformance.conftest import Server, serving
from tests.conformance.test_authorization import AUTHORIZER
from tests.support import programs

PROGRAM = Path(sys.executable).with_name("pybroker")

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving({**AUTHORIZER, "super.users": "User:ANONYMOUS"}) as running:
        yield running


def printed(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.strip()}


def ours(*arguments: str) -> set[str]:
    ran = subprocess.run([PROGRAM, "acls", *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return printed(ran.stdout)


def kafkas(*arguments: str) -> set[str]:
    programs.kafka_tools()
    ran = java.run_java_tool("acls", *arguments)
    assert ran.returncode == 0, ran.stderr
    return printed(ran.stdout)


def test_entries_are_added_listed_and_removed_as_by_kafkas_tool(server: Server) -> None:
    at = ("--bootstrap-server", server.bootstrap_servers)
    adding = ("--add", "--allow-principal", "User:alice", "--deny-principal", "User:bob", "--allow-host", "10.0.0.1")
    one, other = ("--topic", "by-one", "--operation", "Read"), ("--topic", "by-other", "--operation", "Read")
    added = ours(*at, *adding, *one)
    assert {line.replace("by-one", "by-other") for line in added} == kafkas(*at, *adding, *other)
    ours(*at, *adding, "--producer", "--idempotent", "--topic", "p", "--resource-pattern-type", "prefixed")
    ours(*at, *adding, "--consumer", "--topic", "c", "--group", "*")
    for asked in (
        ("--list",),
        ("--list", "--topic", "pq", "--resource-pattern-type", "match"),
        ("--list", "--principal", "User:bob"),
    ):
        listed = ours(*at, *asked)
        assert listed == kafkas(*at, *asked)
        assert listed
    removing = ("--remove", "--force", "--topic")
    assert ours(*at, *removing, "by-other") == kafkas(*at, *removing, "by-one") == set()
    assert not any("by-o" in line for line in ours(*at, "--list"))
