"""What records make of a consumer group, and what is handed on from one value of it to the next."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.modern.decision import Decision
from pybroker.coordinator.group.modern.draft import ConsumerGroupDraft
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.member import Member
from pybroker.coordinator.group.modern.records import (
    build_current,
    build_epoch,
    build_member_tombstones,
    build_partition_metadata_tombstone,
    build_regex,
    build_regex_tombstone,
    build_subscription,
    build_target,
    build_target_epoch,
)
from pybroker.coordinator.group.modern.regex import ResolvedRegex
from pybroker.coordinator.group.modern.replay import replay
from pybroker.coordinator.group.records import GroupRecord
from pybroker.protocol.messages.group_records.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)

FOLLOWING = ("static_members", "regex_subscribers", "classic_members", "subscriptions", "subscribed_topics")
TOPIC_SETS = (frozenset[str](), frozenset({"x"}), frozenset({"x", "y"}), frozenset({"z"}))


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(("", "i", "j")), st.sampled_from(TOPIC_SETS))))
def test_what_is_handed_on_is_what_a_walk_over_all_members_finds(
    changes: list[tuple[str, str, frozenset[str]]],
) -> None:
    group = ConsumerGroup(GroupId("g"))
    for member_id, instance_id, topics in changes:
        value = ConsumerGroupMemberMetadataValue(
            instance_id=instance_id or None,
            subscribed_topic_names=sorted(topics),
            subscribed_topic_regex="r.*" if len(topics) == 1 else "",
        )
        key = ConsumerGroupMemberMetadataKey(group_id="g", member_id=member_id)
        after = replay(group, key, value)
        assert after is not None
        fresh = ConsumerGroup(GroupId("g"), members=after.members)
        for name in FOLLOWING:
            assert getattr(after, name) == getattr(fresh, name)
        group = after


MEMBER_IDS = ("a", "b", "c")
HELD = st.dictionaries(st.sampled_from((b"t" * 16, b"u" * 16)), st.dictionaries(st.integers(0, 3), st.integers(0, 9)))
MEMBERS = st.builds(
    lambda **given: Member(**given),
    member_id=st.sampled_from(MEMBER_IDS),
    epoch=st.integers(1, 9),
    instance_id=st.sampled_from((None, "i", "j")),
    topics=st.sampled_from(TOPIC_SETS),
    regex=st.sampled_from(("", "r.*")),
    assigned=HELD,
    revoking=HELD,
)
RECORDS = st.lists(
    st.one_of(
        st.builds(build_subscription, st.just("g"), MEMBERS),
        st.builds(build_current, st.just("g"), MEMBERS),
        st.builds(build_target, st.just("g"), st.sampled_from(MEMBER_IDS), st.just({b"t" * 16: frozenset((1,))})),
        st.builds(build_epoch, st.just("g"), st.integers(2, 9), st.integers(0, 9)),
        st.builds(build_target_epoch, st.just("g"), st.integers(2, 9), st.integers(1, 9)),
        st.builds(build_regex, st.just("g"), st.just("r.*"), st.just(ResolvedRegex(frozenset("r"), 1))),
        st.builds(build_regex_tombstone, st.just("g"), st.just("r.*")),
        st.builds(build_partition_metadata_tombstone, st.just("g")),
        st.sampled_from(MEMBER_IDS).map(lambda one: list(build_member_tombstones("g", one))[1]),
        st.sampled_from(MEMBER_IDS).map(lambda one: list(build_member_tombstones("g", one))[2]),
    ),
    max_size=12,
)


def replayed(group: ConsumerGroup, records: Sequence[Any]) -> ConsumerGroup:
    for record in records:
        after = replay(group, record.key, record.value)
        assert after is not None
        group = after
    return group


@given(RECORDS, RECORDS, RECORDS)
def test_what_is_decided_together_is_what_its_records_make_one_after_the_other(
    before: list[GroupRecord], first: list[GroupRecord], then: list[GroupRecord]
) -> None:
    group, same = (replayed(ConsumerGroup(GroupId("g")), before) for _ in range(2))
    for name in FOLLOWING:  # what is worked out is handed on, or worked out anew
        getattr(group, name)
    decision = Decision(group)
    decision.write(first)
    decision.write(then)
    # Each record anew: what is known ahead is known of this very object alone.
    apart = replayed(same, [msgspec.structs.replace(record, key=copy.copy(record.key)) for record in (*first, *then)])
    assert decision.group == apart
    for name in FOLLOWING:
        assert getattr(decision.group, name) == getattr(apart, name)
    assert replayed(group, decision.records) is decision.group, "they are not worked out a second time"


def test_a_thousand_members_cost_one_copy_of_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    built, build = 0, ConsumerGroupDraft.build

    def counted(draft: ConsumerGroupDraft) -> ConsumerGroup:
        nonlocal built
        built += 1
        return build(draft)

    monkeypatch.setattr(ConsumerGroupDraft, "build", counted)
    group = ConsumerGroup(GroupId("g"))
    decision = Decision(group)
    members = [Member(str(number), epoch=1, assigned={b"t" * 16: {number: 1}}) for number in range(1000)]
    decision.write(build_subscription("g", member) for member in members)
    decision.write(build_current("g", member) for member in members)
    assert replayed(group, decision.records) is decision.group
    assert (len(decision.group.members), built) == (1000, 2)


def test_targets_that_are_written_together_are_those_of_their_records() -> None:
    group = ConsumerGroup(GroupId("g"), targets={"b": {b"t": frozenset((3,))}})
    decision = Decision(group)
    decision.write_targets({"a": {b"t": frozenset((1, 2))}, "b": {}})
    made: ConsumerGroup | None = ConsumerGroup(GroupId("g"), targets=group.targets)
    for record in decision.records:
        assert isinstance(record, GroupRecord)
        made = replay(made, record.key, record.value)
    assert made is not None
    assert decision.group.targets == made.targets == {"a": {b"t": frozenset((1, 2))}, "b": {}}
