"""`pybroker acls` beside Kafka's kafka-acls on the same server: the same entries, and the same lines for them.

Kafka's tool prints entries in the order of a hash table, so that lines are compared as a set.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.conftest import Server, serving
from tests.conformance.test_authorization import AUTHORIZER
from tests.support import kafka_tools, programs

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
    ran = kafka_tools.run("acls", *arguments)
    assert ran.returncode == 0, ran.stderr
    return printed(ran.stdout)


def test_entries_are_added_listed_and_removed_as_by_kafkas_tool(server: Server) -> None:
    at = ("--bootstrap-server", server.bootstrap_servers)
    adding = ("--add", "--allow-principal", "User:alice", "--deny-principal", "User:bob", "--allow-host", "10.0.0.1")
    one, other = ("--topic", "by-one", "--operation", "Read"), ("--topic", "by-other", "--operation", "Read")
    added = ours(*at, *adding, *one)
    assert {line.replace("by-one", "by-other") for line in added} == kafkas(*at, *adding, *other)
    role = ("--add", "--allow-principal", "User:alice", "--allow-host", "10.0.0.1")
    ours(*at, *role, "--producer", "--idempotent", "--topic", "p", "--resource-pattern-type", "prefixed")
    ours(*at, *role, "--consumer", "--topic", "c", "--group", "*")
    for requested in (
        ("--list",),
        ("--list", "--principal"),
        ("--list", "--principal", "--topic", "pq", "--resource-pattern-type", "match"),
        ("--list", "--topic", "pq", "--resource-pattern-type", "match"),
        ("--list", "--principal", "User:bob"),
    ):
        listed = ours(*at, *requested)
        assert listed == kafkas(*at, *requested)
        assert listed
    removing = ("--remove", "--force", "--topic")
    assert ours(*at, *removing, "by-other") == kafkas(*at, *removing, "by-one") == set()
    assert not any("by-o" in line for line in ours(*at, "--list"))


def test_entries_of_a_principal_are_removed_as_by_kafkas_tool(server: Server) -> None:
    at = ("--bootstrap-server", server.bootstrap_servers)
    carol = ("--allow-principal", "User:carol", "--allow-host", "10.0.0.1")
    dave = ("--deny-principal", "User:dave", "--deny-host", "10.0.0.2")
    both = (*carol, *dave, "--operation", "Read", "--operation", "Write")
    for added, removed in (
        (both, (*carol, "--operation", "Read")),
        (both, (*dave, "--operation", "Write")),
        ((*carol, "--producer"), (*carol, "--producer")),
        ((*carol, "--producer", "--consumer", "--group", "G"), (*carol, "--consumer", "--group", "G")),
        ((*carol, "--operation", "Read"), ("--allow-principal", "User:carol", "--operation", "Read")),
    ):
        left = []
        for run, name in ((ours, "of-ours"), (kafkas, "of-kafkas")):
            # The same server adds for both: what differs is who removes.
            topic = ("--topic", name)
            ours(*at, "--add", *topic, *[word.replace("G", name) for word in added])
            assert run(*at, "--remove", "--force", *topic, *[word.replace("G", name) for word in removed]) == set()
            left.append({line.replace(name, "NAME") for line in ours(*at, "--list", *topic, "--group", name)})
            ours(*at, "--remove", "--force", *topic, "--group", name)
        assert left[0] == left[1]


@pytest.mark.parametrize(
    "requested",
    [
        ["--list", "--producer", "--allow-principal", "User:a"],
        ["--list", "--deny-host", "10.0.0.1"],
        ["--list", "--idempotent"],
        ["--add", "--deny-principal", "User:a", "--producer", "--topic", "q"],
        ["--add", "--allow-principal", "User:a", "--consumer", "--deny-host", "h", "--topic", "q", "--group", "g"],
        ["--add", "--allow-principal", "User:a", "--consumer", "--topic", "q", "--group", "g", "--cluster"],
        ["--add", "--allow-principal", "User:a", "--producer", "--operation", "Read", "--topic", "q"],
        ["--add", "--allow-principal", "User:a", "--principal", "User:a", "--topic", "q"],
        ["--add", "--allow-principal", "User:a", "--producer"],
        ["--add", "--allow-principal", "User:a"],
        ["--add", "--allow-principal", "User:a", "--cluster", "--resource-pattern-type", "prefixed"],
        ["--remove", "--force"],
    ],
)
def test_options_are_refused_as_by_kafkas_tool(server: Server, requested: list[str]) -> None:
    programs.kafka_tools()
    whole = ("acls", "--bootstrap-server", server.bootstrap_servers, *requested)
    theirs = kafka_tools.run(*whole)
    ran = subprocess.run([PROGRAM, *whole], capture_output=True, text=True, check=False)
    assert (ran.returncode, theirs.returncode) == (1, 1), ran.stderr
    assert ran.stderr.removeprefix("pybroker acls: ").strip() == theirs.stderr.splitlines()[0]
