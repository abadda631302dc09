"""`pybroker consumer-groups` and `groups` print what Kafka's tools print, about the same groups of one broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pybroker.cli.main import main
from pybroker.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from tests.conformance.conftest import Server, serves
from tests.support import kafka_tools, programs
from tests.support.conditions import wait_until

pytestmark = pytest.mark.java

CONSUMER_GROUP_HEARTBEAT = 68
Reported = tuple[list[str], list[str]]


@pytest.fixture
def both(server: Server, capsys: pytest.CaptureFixture[str]) -> Callable[..., Reported]:
    """Runs Kafka's tool, then ours: the lines that each printed on standard output; what it warned of must be alike."""
    programs.kafka_tools()
    address = ("--bootstrap-server", server.bootstrap_servers)

    def run(tool: str, *arguments: str) -> Reported:
        theirs = kafka_tools.run(tool, *address, *arguments)
        capsys.readouterr()
        main([tool, *address, *arguments])
        ours = capsys.readouterr()
        warned = [line for line in theirs.stderr.splitlines() if "WARN" not in line and "\tat " not in line]
        assert [line for line in ours.err.splitlines() if "WARN" not in line] == [
            line for line in warned if not line.startswith(("java.", "org.", "Caused by", "\t"))
        ]
        return ours.out.splitlines(), theirs.stdout.splitlines()

    return run


@pytest.fixture
def group(server: Server, topic_name: str) -> Iterator[str]:
    """A group with offsets 10, 20 and none in the three partitions, of 100 records each, of a topic of its name."""
    with Admin(server.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic_name, 3, -1)])
        admin.wait_for_leaders(topic_name)
        with Producer(server.bootstrap_servers) as producer:
            for number in range(300):
                producer.send(
                    topic_name, b"x", partition=number % 3, timestamp_ms=1_700_000_000_000 + number // 3 * 1000
                )
        admin.alter_group_offsets(topic_name, {TopicPartition(topic_name, 0): 10, TopicPartition(topic_name, 1): 20})
        yield topic_name
        admin.delete_groups([topic_name])
        admin.delete_topics([topic_name])


@pytest.fixture(params=["classic", "consumer"])
def member(server: Server, group: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The protocol of the group's one member, which has all three partitions."""
    if request.param == "consumer" and not serves(server, CONSUMER_GROUP_HEARTBEAT):
        pytest.skip("this broker does not serve the protocol of KIP-848")
    properties = {"group.id": group, "group.protocol": request.param, "enable.auto.commit": False, "client.id": "one"}
    with Consumer(server.bootstrap_servers, properties) as consumer:
        consumer.subscribe([group])
        wait_until(
            lambda: consumer.poll(0.05) is not None and len(consumer.assignment()) == 3, within=60, what="a member"
        )
        wait_until(
            lambda: consumer.poll(0.05) is not None and is_stable(server, group), within=60, what="a stable group"
        )
        yield request.param


def is_stable(server: Server, group: str) -> bool:
    with Admin(server.bootstrap_servers) as admin:
        return admin.describe_groups([group])[group].state == "Stable"


@pytest.mark.parametrize(
    "what", [(), ("--offsets", "--verbose"), ("--members",), ("--state",), ("--state", "--verbose")]
)
def test_a_group_without_members_is_described_alike(
    both: Callable[..., Reported], group: str, what: tuple[str, ...]
) -> None:
    ours, theirs = both("consumer-groups", "--describe", "--group", group, *what)
    assert ours == theirs
    assert len(ours) >= 2


@pytest.mark.parametrize("what", [(), ("--members", "--verbose"), ("--state",), ("--state", "--verbose")])
def test_a_group_with_a_member_is_described_alike(
    both: Callable[..., Reported], group: str, member: str, what: tuple[str, ...]
) -> None:
    ours, theirs = both("consumer-groups", "--describe", "--group", group, *what)
    assert ours == theirs
    assert len(ours) >= 2


def test_a_group_that_does_not_exist_is_an_error_in_the_same_words(both: Callable[..., Reported]) -> None:
    for arguments in (("--describe", "--group", "nobody"), ("--delete", "--group", "nobody")):
        ours, theirs = both("consumer-groups", *arguments)
        assert ours == theirs
        assert any("nobody" in line for line in ours)


def test_groups_are_listed_alike(both: Callable[..., Reported], group: str, member: str) -> None:
    for arguments in (
        ("consumer-groups", "--list"),
        ("consumer-groups", "--list", "--state", "--type"),
        ("consumer-groups", "--list", "--state", "stable,empty"),
        ("consumer-groups", "--list", "--type", member),
        ("groups", "--list"),
        ("groups", "--list", "--consumer"),
        ("groups", "--list", "--group-type", member),
    ):
        ours, theirs = both(*arguments)
        assert sorted(ours) == sorted(theirs), arguments
        assert any(line.startswith(group) for line in ours), arguments


SCENARIOS = [
    ("--to-offset", "5"),
    ("--to-offset", "5000"),
    ("--to-earliest",),
    ("--to-latest",),
    ("--to-datetime", "2023-11-14T22:13:40.000"),
    ("--to-datetime", "2033-11-14T22:13:40.000+01:00"),
    ("--by-duration", "P1000D"),
    ("--by-duration", "-PT1M"),
    ("--to-current",),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=" ".join)
def test_offsets_are_reset_alike(both: Callable[..., Reported], group: str, scenario: tuple[str, ...]) -> None:
    ours, theirs = both(
        "consumer-groups", "--reset-offsets", "--group", group, "--topic", group, "--dry-run", *scenario
    )
    assert sorted(ours) == sorted(theirs)
    assert sum(line.startswith(group) for line in ours) == 3


def test_offsets_are_shifted_alike_where_there_are_any(both: Callable[..., Reported], group: str) -> None:
    for by in ("7", "-7", "-70"):
        scope = ("--topic", f"{group}:0,1") if by == "7" else ("--all-topics",)
        ours, theirs = both(
            "consumer-groups", "--reset-offsets", "--group", group, *scope, "--dry-run", "--shift-by", by
        )
        assert ours == theirs
        assert sum(line.startswith(group) for line in ours) == 2


def test_a_plan_is_exported_executed_and_read_again_alike(
    both: Callable[..., Reported], server: Server, group: str, tmp_path: Path
) -> None:
    reset = ("--reset-offsets", "--group", group)
    ours, theirs = both("consumer-groups", *reset, "--topic", group, "--to-offset", "33", "--dry-run", "--export")
    assert ours == theirs
    plan = tmp_path / "plan.csv"
    plan.write_text("".join(f"{line.removesuffix('33')}44\n" for line in ours if line))
    ours, theirs = both("consumer-groups", *reset, "--from-file", str(plan), "--execute")
    assert ours == theirs
    with Admin(server.bootstrap_servers) as admin:
        assert {p.partition: o.offset for p, o in admin.list_group_offsets(group).items()} == {0: 44, 1: 44, 2: 44}


QUOTED = ["a b", "it's", "a+b", "a\\b", 'a"b', "#a", "a,b", "a" * 25, "😀" * 13]
UNQUOTED = ["a.b-c_d", "ü", "-a", "a:b", "a" * 24, "😀" * 12]


def test_a_plan_is_quoted_alike(both: Callable[..., Reported], server: Server, group: str) -> None:
    groups = [*QUOTED, *UNQUOTED]
    with Admin(server.bootstrap_servers) as admin:
        for name in groups:
            admin.alter_group_offsets(name, {TopicPartition(group, 0): 1})
    named = [word for name in groups for word in ("--group", name)]
    ours, theirs = both(
        "consumer-groups", "--reset-offsets", *named, "--topic", f"{group}:0", "--to-earliest", "--export"
    )
    with Admin(server.bootstrap_servers) as admin:
        admin.delete_groups(groups)
    assert sorted(ours) == sorted(theirs)
    assert sum(line.startswith('"') for line in ours) == len(QUOTED)


def test_a_group_with_members_is_neither_reset_nor_deleted(
    both: Callable[..., Reported], group: str, member: str
) -> None:
    for arguments in (
        ("--reset-offsets", "--group", group, "--topic", group, "--to-latest", "--execute"),
        ("--delete", "--group", group),
        ("--delete-offsets", "--group", group, "--topic", group),
    ):
        ours, theirs = both("consumer-groups", *arguments)
        assert sorted(ours) == sorted(theirs), arguments


def test_offsets_and_groups_are_deleted_alike(both: Callable[..., Reported], server: Server, group: str) -> None:
    ours, theirs = both(
        "consumer-groups", "--delete-offsets", "--group", group, "--topic", f"{group}:0", "--topic", "gone"
    )
    assert ours == theirs
    with Admin(server.bootstrap_servers) as admin:
        assert [p.partition for p in admin.list_group_offsets(group)] == [1]
    address = ["--bootstrap-server", server.bootstrap_servers]
    assert main(["consumer-groups", *address, "--delete", "--group", group]) == 0
    with Admin(server.bootstrap_servers) as admin:
        assert group not in [listed.group_id for listed in admin.list_groups()]
