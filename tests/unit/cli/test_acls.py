from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pybroker.cli.main import main
from pybroker.client.administration.admin import Admin
from pybroker.security.operations import OPERATION_NAMES, PERMISSION_NAMES, RESOURCE_NAMES
from pybroker.testing import Broker

Acls = Callable[..., int]
Entries = Callable[[], set[tuple[str, ...]]]
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ALICE, BOB = ("--allow-principal", "User:alice"), ("--deny-principal", "User:bob")
CONSUMER = "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
RESOURCE = "--topic <topic> or --cluster or --group <group> or --delegation-token <Delegation Token ID>"


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(properties=AUTHORIZED) as broker:
        yield broker


@pytest.fixture
def acls(shared: Broker) -> Iterator[Acls]:
    def run(*arguments: str) -> int:
        return main(["acls", "--bootstrap-server", shared.bootstrap_servers, *arguments])

    yield run
    for kind, name in (("topic", "t"), ("group", "g"), ("transactional-id", "x")):
        run("--remove", "--force", f"--{kind}", name, "--resource-pattern-type", "match")
    run("--remove", "--force", "--cluster")


@pytest.fixture
def entries(shared: Broker) -> Entries:
    def read() -> set[tuple[str, ...]]:
        with Admin(shared.bootstrap_servers) as admin:
            return {
                (
                    RESOURCE_NAMES[acl.pattern.resource_type],
                    acl.principal.removeprefix("User:"),
                    acl.host,
                    OPERATION_NAMES[acl.operation],
                    PERMISSION_NAMES[acl.permission],
                )
                for acl in admin.describe_acls()
            }

    return read


@pytest.mark.parametrize(
    ("added", "removed", "left"),
    [
        (
            ["--topic", "t", *ALICE, "--operation", "Read", "--operation", "Write"],
            ["--topic", "t", *ALICE, "--operation", "Read"],
            {("TOPIC", "alice", "*", "WRITE", "ALLOW")},
        ),
        (
            ["--topic", "t", *ALICE, *BOB, "--operation", "Read"],
            ["--topic", "t", *BOB, "--operation", "Read"],
            {("TOPIC", "alice", "*", "READ", "ALLOW")},
        ),
        (
            ["--topic", "t", *ALICE, "--allow-host", "10.0.0.1", "--allow-host", "10.0.0.2"],
            ["--topic", "t", *ALICE, "--allow-host", "10.0.0.1"],
            {("TOPIC", "alice", "10.0.0.2", "ALL", "ALLOW")},
        ),
        (
            ["--topic", "t", *BOB, "--deny-host", "10.0.0.1", "--deny-host", "10.0.0.2"],
            ["--topic", "t", *BOB, "--deny-host", "10.0.0.2"],
            {("TOPIC", "bob", "10.0.0.1", "ALL", "DENY")},
        ),
        (
            ["--topic", "t", "--transactional-id", "x", *ALICE, "--producer", "--idempotent"],
            ["--topic", "t", *ALICE, "--producer"],
            {
                ("CLUSTER", "alice", "*", "IDEMPOTENT_WRITE", "ALLOW"),
                ("TRANSACTIONAL_ID", "alice", "*", "WRITE", "ALLOW"),
                ("TRANSACTIONAL_ID", "alice", "*", "DESCRIBE", "ALLOW"),
            },
        ),
        (
            ["--topic", "t", "--group", "g", *ALICE, "--producer", "--consumer"],
            ["--topic", "t", "--group", "g", *ALICE, "--consumer"],
            {("TOPIC", "alice", "*", "WRITE", "ALLOW"), ("TOPIC", "alice", "*", "CREATE", "ALLOW")},
        ),
        (
            ["--topic", "t", *ALICE, "--operation", "Read", "--resource-pattern-type", "prefixed"],
            ["--topic", "t1", *ALICE, "--operation", "Read", "--resource-pattern-type", "match"],
            set(),
        ),
        (["--topic", "t", *ALICE, *BOB], ["--topic", "t"], set()),
        (["--cluster", *ALICE, "--operation", "Alter"], ["--cluster", *ALICE, "--operation", "Alter"], set()),
    ],
)
def test_what_options_stand_for_is_removed_and_nothing_else(
    acls: Acls,
    entries: Entries,
    capsys: pytest.CaptureFixture[str],
    added: list[str],
    removed: list[str],
    left: set[tuple[str, ...]],
) -> None:
    assert acls("--add", *added) == 0
    assert entries() > left
    capsys.readouterr()
    assert acls("--remove", "--force", *removed) == 0
    assert capsys.readouterr() == ("", "")
    assert entries() == left


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--list", "--producer", "--consumer"], """Option "[list]" can't be used with option "[producer]\""""),
        (["--list", "--consumer"], """Option "[list]" can't be used with option "[consumer]\""""),
        (["--list", "--allow-host", "h"], """Option "[list]" can't be used with option "[allow-host]\""""),
        (["--list", *ALICE], """Option "[list]" can't be used with option "[allow-principal]\""""),
        (["--list", "--deny-host", "h"], """Option "[list]" can't be used with option "[deny-host]\""""),
        (["--list", *BOB], """Option "[list]" can't be used with option "[deny-principal]\""""),
        (
            ["--add", *ALICE, "--producer", "--operation", "Read", "--topic", "t"],
            """Option "[producer]" can't be used with option "[operation]\"""",
        ),
        (
            ["--add", *BOB, "--producer", "--topic", "t"],
            """Option "[producer]" can't be used with option "[deny-principal]\"""",
        ),
        (
            ["--remove", *ALICE, "--producer", "--topic", "t", "--deny-host", "h"],
            """Option "[producer]" can't be used with option "[deny-host]\"""",
        ),
        (
            ["--add", *ALICE, "--consumer", "--operation", "Read", "--topic", "t", "--group", "g"],
            """Option "[consumer]" can't be used with option "[operation]\"""",
        ),
        (
            ["--add", *BOB, "--consumer", "--topic", "t", "--group", "g"],
            """Option "[consumer]" can't be used with option "[deny-principal]\"""",
        ),
        (
            ["--add", *ALICE, "--consumer", "--deny-host", "h", "--topic", "t", "--group", "g"],
            """Option "[consumer]" can't be used with option "[deny-host]\"""",
        ),
        (
            ["--add", *ALICE, "--principal", "User:q", "--topic", "t"],
            "The --principal option is only available if --list is set",
        ),
        (["--add", *ALICE, "--producer", "--group", "g"], "With --producer you must specify a --topic"),
        (["--list", "--idempotent"], "The --idempotent option is only available if --producer is set"),
        (["--add", *ALICE, "--consumer", "--topic", "t"], CONSUMER + "should be specified."),
        (["--add", *ALICE, "--consumer", "--group", "g"], CONSUMER + "should be specified."),
        (
            ["--add", *ALICE, "--consumer", "--topic", "t", "--group", "g", "--cluster"],
            CONSUMER + "should be specified.",
        ),
        (
            ["--add", *ALICE, "--consumer", "--topic", "t", "--group", "g", "--transactional-id", "x"],
            CONSUMER + "should be specified.",
        ),
        (["--add", *ALICE], f"You must provide at least one resource: {RESOURCE}"),
        (["--remove", "--force"], f"You must provide at least one resource: {RESOURCE}"),
        (
            ["--add", *ALICE, "--cluster", "--resource-pattern-type", "prefixed"],
            f"You must provide at least one resource: {RESOURCE}",
        ),
        (
            ["--add", "--topic", "t", "--allow-host", "h"],
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.",
        ),
        (
            ["--add", *ALICE, "--topic", "t", "--resource-pattern-type", "any"],
            "A '--resource-pattern-type' value of 'ANY' is not valid when adding acls.",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_the_words_of_kafkas_tool(
    acls: Acls, entries: Entries, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert acls(*arguments) == 1
    assert capsys.readouterr() == ("", f"pybroker acls: {words}\n")
    assert entries() == set()


def test_a_consumer_beside_a_producer_may_be_named_with_its_resources(acls: Acls, entries: Entries) -> None:
    named = ("--topic", "t", "--group", "g", "--cluster", "--transactional-id", "x")
    assert acls("--add", *ALICE, "--producer", "--consumer", *named) == 0
    assert {entry[0] for entry in entries()} == {"TOPIC", "GROUP", "TRANSACTIONAL_ID"}
