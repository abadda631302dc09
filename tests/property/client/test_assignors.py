"""Assignments equal those of Kafka's own assignors, on groups that grow and shrink and on claims that contradict.

Half of the groups are random and unrelated; the others go on from what the assignor itself answered, as groups do.
"""

from __future__ import annotations

import base64
import json
import random
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from pybench.peers import java
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors import Assignor, GroupMember, RackAware, make_assignors
from pybroker.client.assignors.sticky import encode_claim
from tests.support import java_oracle, programs

pytestmark = pytest.mark.java

DRAWS = 5
GROUPS = 300
Group = tuple[str, dict[str, int], dict[str, GroupMember], dict[TopicPartition, frozenset[str]]]
RACKS = "abc"


def random_racks(dice: random.Random, partitions: dict[str, int]) -> dict[TopicPartition, frozenset[str]]:
    """Racks of each partition's replicas: none at all in every second group, else one, two or all of them."""
    if dice.random() < 0.5:
        return {}
    most = dice.randrange(1, 4)
    return {
        TopicPartition(topic, index): frozenset(dice.sample(RACKS, dice.randrange(1, most + 1)))
        for topic, count in partitions.items()
        for index in range(count)
    }


def random_members(dice: random.Random, partitions: dict[str, int], racks: str) -> dict[str, GroupMember]:
    """Members with any subscriptions and any claims, each in one of the racks or in none."""
    every = [TopicPartition(topic, index) for topic, count in partitions.items() for index in range(count)]
    same = tuple(sorted(partitions)) if dice.random() < 0.5 else None
    members = {}
    for number in range(dice.randrange(1, 14)):
        claimed = tuple(dice.sample(every, dice.randrange(min(len(every), 8) + 1)))
        generation = dice.choice((None, 3, 4, 5, 5, 5))
        members[f"consumer-{dice.randrange(10**6)}-{number}"] = GroupMember(
            topics=same or tuple(dice.sample([*partitions, "gone"], dice.randrange(1, len(partitions) + 2))),
            user_data=encode_claim(claimed, generation) if generation is not None else None,
            owned=claimed,
            generation=generation,
            instance_id=f"i{number}" if dice.random() < 0.2 else None,
            rack=dice.choice(racks) if racks and dice.random() < 0.9 else None,
        )
    return members


def random_groups(assignor: Assignor, dice: random.Random) -> Iterator[Group]:
    """Groups one after another, every second one made from the answer to the one before."""
    for _ in range(GROUPS):
        partitions = {f"topic-{n}": dice.randrange(1, 9) for n in range(dice.randrange(1, 6))}
        racks = random_racks(dice, partitions)
        members = random_members(dice, partitions, RACKS if racks else "")
        yield assignor.name, partitions, members, racks
        response = assign((assignor.name, partitions, members, racks), assignor)
        grown = {topic: count + dice.randrange(2) for topic, count in partitions.items()}
        if racks:
            racks |= {TopicPartition(topic, count - 1): frozenset("a") for topic, count in grown.items()}
        later = {}
        for member_id, member in members.items():
            if len(members) > 1 and dice.random() < 0.2:
                continue
            held = tuple(response[member_id])
            later[member_id] = GroupMember(
                member.topics, encode_claim(held, 9), held, 9, member.instance_id, member.rack
            )
        for number in range(dice.randrange(3)):
            topics = dice.choice(list(members.values())).topics
            later[f"new-{number}"] = GroupMember(topics, rack=dice.choice(RACKS) if racks else None)
        if later:
            yield assignor.name, grown, later, racks


def assign(group: Group, assignor: Assignor) -> dict[str, list[TopicPartition]]:
    """What our assignor answers."""
    _, partitions, members, racks = group
    if isinstance(assignor, RackAware):
        return assignor.assign_by_racks(partitions, members, racks)
    return assignor.assign(partitions, members)


def question(group: Group) -> str:
    name, partitions, members, racks = group
    described = [
        {
            "id": member_id,
            "topics": member.topics,
            "userData": None if member.user_data is None else base64.b64encode(member.user_data).decode(),
            "owned": [[p.topic, p.partition] for p in member.owned],
            "generation": -1 if member.generation is None else member.generation,
            "instance": member.instance_id,
            "rack": member.rack,
        }
        for member_id, member in members.items()
    ]
    by_topic = {
        topic: [sorted(racks[TopicPartition(topic, index)]) for index in range(count)]
        for topic, count in (partitions.items() if racks else ())
    }
    return json.dumps({"assignor": name, "partitions": partitions, "members": described, "racks": by_topic})


def query_kafka(groups: list[Group]) -> list[dict[str, Any]]:
    """What Kafka's assignors answer."""
    ran = subprocess.run(
        java.short_java_command(java.build_client("AssignorOracle", java_oracle.SOURCES), log_level="off"),
        input="\n".join(map(question, groups)),
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def fits(group: Group, response: dict[str, Any]) -> bool:
    """Whether Kafka's answer makes sense: its sticky assignors may throw, or assign a topic that nobody wanted."""
    return "error" not in response and all(
        topic in group[2][member].topics for member, assigned in response.items() for topic, _ in assigned
    )


def may_stray(group: Group) -> bool:
    """Whether Kafka's sticky assignors may, on their way, give a partition back to one who no longer wants its topic.

    They do so for the holder of an older generation, and a later move may hide it: in about one of 6,000 groups the
    answer fits and is another than without that step, which ours does not take.
    """
    youngest = max(member.generation or 0 for member in group[2].values())
    return any(
        member.generation is not None
        and member.generation < youngest
        and any(claimed.topic not in member.topics for claimed in member.owned)
        for member in group[2].values()
    )


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_assignments_are_those_of_kafkas_assignors(name: str) -> None:
    programs.kafka_tools()
    (assignor,) = make_assignors(name)
    seed = random.randrange(10**9)
    dice = random.Random(seed)
    count = compared = strayed = 0
    # The share that fits is a mean of 0.92 and varies by some hundredths: too few in one draw is looked at in more.
    for _ in range(DRAWS):
        groups = list(random_groups(assignor, dice))
        responses = query_kafka(groups)
        assert len(responses) == len(groups)
        for group, response in zip(groups, responses, strict=True):
            if fits(group, response):
                ours = assign(group, assignor)
                theirs = {member: {TopicPartition(*pair) for pair in assigned} for member, assigned in response.items()}
                equal = {member: set(assigned) for member, assigned in ours.items()} == theirs
                assert equal or (assignor.name.endswith("sticky") and may_stray(group)), f"seed {seed}: {group}"
                strayed += not equal
                assert all(len(set(assigned)) == len(assigned) for assigned in ours.values())
                compared += 1
        count += len(groups)
        if compared > 0.9 * count:
            break
    assert compared > 0.9 * count, f"seed {seed}"
    assert strayed <= 3, f"seed {seed}"
