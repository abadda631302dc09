"""Subscriptions of members, and their effects.

Owns the resolution of names and patterns to topics, whether all subscriptions are equal, the choice of the assignor,
and when a change of these increments the group's epoch. Reads the given topics of the cluster.

Patterns are resolved within a heartbeat: when a member sends a new one, when topics were created since the last time
(at most every `_REFRESH_PAUSE_MS`), and after `group.consumer.regex.refresh.interval.ms`
(`docs/adr/0016-where-consumer-groups-differ-from-kafkas.md`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pybroker.coordinator.group.errors import InvalidRegularExpressionError
from pybroker.coordinator.group.modern import topic_hash
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.records import (
    build_epoch,
    build_partition_metadata_tombstone,
    build_regex,
    build_regex_tombstone,
)
from pybroker.coordinator.group.modern.regex import ResolvedRegex, check_pattern, matching
from pybroker.coordinator.runtime.patterns import InvalidPatternError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pybroker.coordinator.group.modern.decision import Decision
    from pybroker.coordinator.group.modern.member import Member
    from pybroker.coordinator.group.view import GroupView, TopicInfo

_REFRESH_PAUSE_MS = 10_000
"""Kafka's `REGEX_BATCH_REFRESH_MIN_INTERVAL_MS`, which is not configurable there."""
_LOOKED_UP = 4
"""Maximum number of known patterns that one heartbeat resolves again, the oldest first."""


def subscribed_names(member: Member, regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """Return the topic names in a member's subscription, whether or not the topics exist."""
    resolved = regexes.get(member.regex) if member.regex else None
    return member.topics if resolved is None else member.topics | resolved.topics


def subscribed_ids(
    member: Member, regexes: Mapping[str, ResolvedRegex], topics: Mapping[str, TopicInfo]
) -> frozenset[bytes]:
    """Return the ids of the existing topics in a member's subscription."""
    return frozenset(topics[name].topic_id for name in present(subscribed_names(member, regexes), topics))


def present(names: frozenset[str], topics: Mapping[str, TopicInfo]) -> Iterable[str]:
    """Return the names of existing topics, in time of the smaller set: a member may name a hundred thousand."""
    return names.intersection(topics) if len(topics) < len(names) else [name for name in names if name in topics]


def is_homogeneous(members: Collection[Member]) -> bool:
    """Return whether all subscriptions are equal, all by names or all by one pattern."""
    by_name = {member.topics for member in members}
    by_regex = {member.regex for member in members}
    if by_regex <= {""}:
        return len(by_name) <= 1
    return len(by_regex) == 1 and by_name == {frozenset()}


def preferred_assignor(members: Iterable[Member], assignors: tuple[str, ...]) -> str:
    """Return the assignor that most members prefer; a tie goes to the one that is configured first."""
    chosen = [member.assignor for member in members if member.assignor in assignors]
    return max(assignors, key=chosen.count)


def metadata_hash(names: frozenset[str], topics: Mapping[str, TopicInfo]) -> int:
    """Return the hash of the existing topics."""
    return topic_hash.group_hash({name: _topic_hash(name, topics[name]) for name in present(names, topics)})


def update_patterns(decision: Decision, view: GroupView, now: int) -> bool:
    """Resolve patterns that are due, and delete unused ones; return whether a subscription has changed."""
    group = decision.group
    if not group.regexes and not group.regex_subscribers:
        return False
    decision.write(
        build_regex_tombstone(group.id, regex) for regex in group.regexes.keys() - group.regex_subscribers.keys()
    )
    changed = False
    known, due = decision.group.regexes, _due(decision.group, view, now)
    # A group may have as many patterns as members, and each may take milliseconds: the others remain due.
    oldest = sorted((-_age_ms(known[regex], now), regex) for regex in due if regex in known)[:_LOOKED_UP]
    for regex in sorted([regex for regex in due if regex not in known] + [regex for _, regex in oldest]):
        found = matching(regex, view.topics)
        before = decision.group.regexes.get(regex, ResolvedRegex())
        changed = changed or found != before.topics
        decision.write([build_regex(group.id, regex, ResolvedRegex(found, view.topics_version, now))])
    return changed


def check_new_pattern(group: ConsumerGroup, regex: str) -> None:
    """Raise an error if a new pattern is invalid; a pattern of another member is not checked again."""
    if not regex or regex in group.regex_subscribers:
        return
    try:
        check_pattern(regex)
    except InvalidPatternError as error:
        raise InvalidRegularExpressionError(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        ) from None


def update_epoch(decision: Decision, view: GroupView, *, changed: bool) -> None:
    """Increment the group's epoch if a subscription or the hash of its topics has changed."""
    group = decision.group
    seen = current_hash(group, view.topics)
    if changed or seen != group.metadata_hash:
        decision.write([build_epoch(group.id, group.epoch + 1, seen)])
        if group.has_partition_metadata:
            decision.write([build_partition_metadata_tombstone(group.id)])


def current_hash(group: ConsumerGroup, topics: Mapping[str, TopicInfo]) -> int:
    """Return the hash of the group's topics, which is cached per group and state of the cluster's topics."""
    seen = group.__dict__.get("_seen")
    if seen is None or seen[0] is not topics:
        seen = group.__dict__["_seen"] = topics, metadata_hash(group.subscribed_topics, topics)
    found: int = seen[1]
    return found


def _due(group: ConsumerGroup, view: GroupView, now: int) -> Iterable[str]:
    wanted = group.regex_subscribers.keys()
    known = group.regexes
    if not wanted:
        return ()
    age_ms = max((_age_ms(known[regex], now) for regex in wanted if regex in known), default=0)
    version = min((known[regex].version for regex in wanted if regex in known), default=view.topics_version)
    stale = version < view.topics_version and age_ms > _REFRESH_PAUSE_MS
    if stale or age_ms > view.settings.consumer.regex_refresh_interval_ms:
        return wanted
    return wanted - known.keys()


def _age_ms(resolved: ResolvedRegex, now: int) -> float:
    """Return the ms since a pattern was resolved; infinity for a time in the future, before the clock was set back."""
    return now - resolved.timestamp_ms if now >= resolved.timestamp_ms else math.inf


def _topic_hash(name: str, topic: TopicInfo) -> int:
    found: int | None = topic.__dict__.get("_hash")
    if found is None:
        found = topic_hash.topic_hash(name, topic.topic_id, topic.racks or ((),) * topic.partitions)
        topic.__dict__["_hash"] = found
    return found
