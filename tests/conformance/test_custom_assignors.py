"""Groups whose members bring an assignor of their own: the one of the guide."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from pybroker.client import ClientError, Consumer, TopicPartition
from pybroker.client.assignors import Assignment, GroupMember, StatelessAssignor
from tests.conformance.conftest import Server
from tests.support import repository
from tests.support.conditions import wait_until

Make = Callable[..., Consumer]
PARTITIONS = 8


def guides_assignor() -> Any:
    """The class that the guide shows, made of the guide's text."""
    blocks = re.findall(r"```python\n(.*?)```", repository.text("docs/guides/consumer.md"), re.DOTALL)
    (block,) = [block for block in blocks if "class Weighted" in block]
    names: dict[str, Any] = {}
    exec(block[: block.index("\nsettings = ")], names)
    return names["Weighted"]


class ToAStranger(StatelessAssignor):
    """Assigns to somebody who is no member."""

    name = "to-a-stranger"

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember]) -> Assignment:
        return {**{member: [] for member in members}, "nobody": [TopicPartition(next(iter(partitions)), 0)]}


class FailsOnce(StatelessAssignor):
    """Raises what is no error of this client, the first time."""

    name = "fails-once"

    def __init__(self) -> None:
        self.failed = False

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember]) -> Assignment:
        if not self.failed:
            self.failed = True
            raise ZeroDivisionError("by no member")
        (member,) = members
        return {member: [TopicPartition(topic, index) for topic, count in partitions.items() for index in range(count)]}


@pytest.fixture
def topic(make_topic: Callable[[int], str]) -> str:
    return make_topic(PARTITIONS)


@pytest.fixture
def join(server: Server, topic: str) -> Iterator[Make]:
    """Makes members of one group, each with its assignors."""
    with ExitStack() as stack:

        def make(*assignors: Any) -> Consumer:
            properties = {
                "group.id": f"group-{topic}",
                "partition.assignment.strategy": list(assignors),
                "heartbeat.interval.ms": "100",
            }
            consumer = stack.enter_context(Consumer(server.bootstrap_servers, properties))
            consumer.subscribe([topic])
            return consumer

        yield make


def check_shares(*members: Consumer, shares: list[int]) -> None:
    """Poll in turn until the members have so many partitions each, which are all there are."""

    def arrived() -> bool:
        for member in members:
            member.poll(0.02)
        held = [member.assignment() for member in members]
        return [len(partitions) for partitions in held] == shares and len(frozenset().union(*held)) == PARTITIONS

    wait_until(arrived, within=60, what=lambda: f"{shares}, but {[member.assignment() for member in members]}")


def test_a_group_is_assigned_by_the_guides_assignor_from_what_its_members_sent(join: Make) -> None:
    weighted = guides_assignor()
    check_shares(join(weighted, "range"), join(weighted(weight=3), "range"), shares=[2, 6])


def test_a_member_that_does_not_know_it_brings_the_group_back_to_what_all_know(join: Make) -> None:
    weighted = guides_assignor()
    light, heavy = join(weighted, "range"), join(weighted(weight=3), "range")
    check_shares(light, heavy, shares=[2, 6])
    newcomer = join("range")

    def levelled() -> bool:
        members = (light, heavy, newcomer)
        for member in members:
            member.poll(0.02)
        return sorted(len(member.assignment()) for member in members) == [2, 3, 3]

    wait_until(levelled, within=60, what="even shares")
    check_shares(newcomer, light, heavy, shares=[len(c.assignment()) for c in (newcomer, light, heavy)])


def test_what_an_assignor_does_wrong_is_raised_in_its_program(join: Make) -> None:
    member = join(ToAStranger)

    def raised() -> str | None:
        try:
            member.poll(0.05)
        except ClientError as error:
            return str(error)
        return None

    fault = wait_until(raised, within=60, what="the fault")
    assert fault is not None
    assert "the assignor 'to-a-stranger' assigned partitions to nobody, not a member" in fault


def test_an_assignor_that_fails_once_is_asked_again(join: Make) -> None:
    member = join(FailsOnce())

    def raised() -> bool:
        try:
            member.poll(0.05)
        except ZeroDivisionError:
            return True
        return False

    wait_until(raised, within=60, what="the fault")
    check_shares(member, shares=[PARTITIONS])
