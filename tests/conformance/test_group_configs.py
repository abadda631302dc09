"""Settings of single groups: changed, described, listed, bounded by the broker's, and sent to members."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.conftest import Server, serving
from tests.conformance.test_config_tools import kafkas, ours
from tests.conformance.test_configs import (
    DEFAULT,
    DELETE,
    GROUP,
    INVALID_CONFIG,
    INVALID_REQUEST,
    SET,
    alter,
    describe,
    replace,
    resource,
    synonyms,
)
from tests.conformance.test_consumer_groups import heartbeat
from tests.support.conditions import wait_until
from tests.support.wire import Wire

DYNAMIC_GROUP = 8
SESSION, HEARTBEAT, INTERVAL = (
    f"consumer.{name}.ms" for name in ("session.timeout", "heartbeat.interval", "assignment.interval")
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server whose groups have Kafka's defaults."""
    with serving() as server:
        yield server


@pytest.fixture
def group() -> str:
    """A group that no client has used: it need not exist."""
    return f"configured-{uuid.uuid4().hex[:8]}"


def own(wire: Wire, group: str) -> dict[str, str]:
    """What the group sets itself."""
    entries = describe(wire, GROUP, group).values()
    return {entry.name: entry.value for entry in entries if entry.config_source == DYNAMIC_GROUP}


def completed(wire: Wire, group: str, configs: dict[str, str]) -> None:
    wait_until(lambda: own(wire, group) == configs, within=60, what=f"{group} has {configs}")


def outcome(wire: Wire, *changes: tuple[str, int, str | None], name: str) -> tuple[int, str | None]:
    (result,) = alter(wire, resource(GROUP, name, *changes))
    return result.error_code, result.error_message


def test_a_groups_settings_are_changed_and_described(wire: Wire, group: str) -> None:
    before = describe(wire, GROUP, group)
    assert {name: before[name].value for name in (SESSION, HEARTBEAT, INTERVAL)} == {
        SESSION: "45000",
        HEARTBEAT: "5000",
        INTERVAL: "1000",
    }
    assert {before[name].config_source for name in (SESSION, HEARTBEAT, INTERVAL)} == {DEFAULT}
    assert synonyms(before[SESSION]) == [("group.consumer.session.timeout.ms", "45000", DEFAULT)]
    assert outcome(wire, (SESSION, SET, "50000"), (HEARTBEAT, SET, "7000"), name=group) == (0, None)
    completed(wire, group, {SESSION: "50000", HEARTBEAT: "7000"})
    assert synonyms(describe(wire, GROUP, group)[SESSION]) == [
        (SESSION, "50000", DYNAMIC_GROUP),
        ("group.consumer.session.timeout.ms", "45000", DEFAULT),
    ]
    listed = wire.call("ListConfigResources", 1, resource_types=[GROUP]).config_resources
    assert group in {one.resource_name for one in listed}
    assert outcome(wire, (HEARTBEAT, DELETE, None), name=group) == (0, None)
    completed(wire, group, {SESSION: "50000"})
    assert replace(wire, GROUP, group, consumer_assignment_interval_ms="0").error_code == 0
    completed(wire, group, {INTERVAL: "0"})
    assert replace(wire, GROUP, group).error_code == 0
    completed(wire, group, {})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (SESSION, "44999", f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms"),
        (SESSION, "60001", f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms"),
        (HEARTBEAT, "4999", f"{HEARTBEAT} must be greater than or equal to group.consumer.min.heartbeat.interval.ms"),
        (INTERVAL, "15001", f"{INTERVAL} must be less than or equal to group.consumer.max.assignment.interval.ms"),
        ("retention.ms", "1", "Unknown group config name: retention.ms"),
    ],
)
def test_what_a_broker_does_not_allow_is_refused(wire: Wire, group: str, name: str, value: str, words: str) -> None:
    code, reported = outcome(wire, (name, SET, value), name=group)
    assert (code, str(reported)[: len(words)]) == (INVALID_CONFIG, words)
    assert own(wire, group) == {}


def test_there_is_no_default_of_all_groups(wire: Wire) -> None:
    assert outcome(wire, (SESSION, SET, "50000"), name="")[0] == INVALID_REQUEST
    requested: list[dict[str, Any]] = [{"resource_type": GROUP, "resource_name": "", "configuration_keys": None}]
    (result,) = wire.call("DescribeConfigs", 4, resources=requested).results
    assert (result.error_code, result.error_message) == (INVALID_REQUEST, "Group name must not be empty")


def test_members_receive_the_groups_heartbeat_interval(server: Server, wire: Wire, nobody: str) -> None:
    wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=[nobody])

    def beat(epoch: int) -> Any:
        return heartbeat(server, group_id=nobody, member_epoch=epoch)

    wait_until(lambda: beat(0).error_code == 0, within=60, what="the member has joined")
    assert beat(0).heartbeat_interval_ms == 5000
    assert outcome(wire, (HEARTBEAT, SET, "8000"), name=nobody) == (0, None)
    wait_until(lambda: beat(0).heartbeat_interval_ms == 8000, within=60, what="the member receives the new interval")
    assert beat(-1).error_code == 0


def described_of(group: str, lines: list[str]) -> list[str]:
    """The heading of one group and what stands below it.

    The tools list groups in no order, and those of earlier tests too.
    """
    heading = "Dynamic configs for group "
    begin = lines.index(f"{heading}{group} are:")
    below = itertools.takewhile(lambda line: not line.startswith(heading), lines[begin + 1 :])
    return [lines[begin], *below]


@pytest.mark.java
def test_groups_are_configured_as_by_kafkas_tool(server: Server, group: str) -> None:
    at = ("--bootstrap-server", server.bootstrap_servers)
    changes = ("--alter", "--entity-type", "groups", "--entity-name", group, "--add-config", f"{SESSION}=50000")
    assert ours("configs", *at, *changes) == kafkas("configs", *at, *changes)
    requested = ("--describe", "--entity-type", "groups")
    described = described_of(group, ours("configs", *at, *requested))
    assert len(described) > 1
    assert described == described_of(group, kafkas("configs", *at, *requested))
    nobody = f"The group 'nobody-{group}' doesn't exist and doesn't have dynamic config."
    assert ours("configs", *at, "--describe", "--group", f"nobody-{group}") == [nobody]
    back = ("--alter", "--group", group, "--delete-config", SESSION)
    assert ours("configs", *at, *back) == [f"Completed updating config for group {group}."]
