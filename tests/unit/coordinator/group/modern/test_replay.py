"""What records make of a consumer group, and what is handed on from one value of it to the next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.modern.decision import Decision
from pybroker.coordinator.group.modern.group import ConsumerGroup
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


def test_targets_that_are_written_together_are_those_of_their_records() -> None:
    group = ConsumerGroup(GroupId("g"), targets={"b": {b"t": frozenset((3,))}})
    decision = Decision(group)
    decision.write_targets({"a": {b"t": frozenset((1, 2))}, "b": {}})
    replayed: ConsumerGroup | None = ConsumerGroup(GroupId("g"), targets=group.targets)
    for record in decision.records:
        assert isinstance(record, GroupRecord)
        replayed = replay(replayed, record.key, record.value)
    assert replayed is not None
    assert decision.group.targets == replayed.targets == {"a": {b"t": frozenset((1, 2))}, "b": {}}
