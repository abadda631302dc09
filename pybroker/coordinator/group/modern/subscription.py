"""What members are subscribed to, and what that means.

Owns the way from names and patterns to topics, whether all members want the same, the choice of the assignor, and when
a change of any of it raises the group's epoch. Reads the cluster's topics as they are handed in.

Patterns are looked up on the spot, when a member brings a new one, when topics have been made since the last time (not
more often than `_REFRESH_PAUSE_MS`), and after `group.consumer.regex.refresh.interval.ms`
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
"""Kafka's `REGEX_BATCH_REFRESH_MIN_INTERVAL_MS`, which is no setting there."""
_LOOKED_UP = 4
"""Patterns that are known and are looked up anew in one heartbeat, those of the longest ago."""


def subscribed_names(member: Member, regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """Return the names of the topics that a member is subscribed to, whether or not they exist."""
    resolved = regexes.get(member.regex) if member.regex else None
    return member.topics if resolved is None else member.topics | resolved.topics


def subscribed_ids(
    member: Member, regexes: Mapping[str, ResolvedRegex], topics: Mapping[str, TopicInfo]
) -> frozenset[bytes]:
    """Return the ids of the topics that a member is subscribed to and that exist."""
    return frozenset(topics[name].topic_id for name in present(subscribed_names(member, regexes), topics))


def present(names: frozenset[str], topics: Mapping[str, TopicInfo]) -> Iterable[str]:
    """Return the names that topics have, at the cost of the smaller: a member may name a hundred thousand."""
    return names.intersection(topics) if len(topics) < len(names) else [name for name in names if name in topics]


def is_homogeneous(members: Collection[Member]) -> bool:
    """Return whether all members are subscribed to the same, all by names or all by one pattern."""
    by_name = {member.topics for member in members}
    by_regex = {member.regex for member in members}
    if by_regex <= {""}:
        return len(by_name) <= 1
    return len(by_regex) == 1 and by_name == {frozenset()}


def preferred_assignor(members: Iterable[Member], assignors: tuple[str, ...]) -> str:
    """Return the assignor that most members wish for, of equals the one that is configured first."""
    wishes = [member.assignor for member in members if member.assignor in assignors]
    return max(assignors, key=wishes.count)


def metadata_hash(names: frozenset[str], topics: Mapping[str, TopicInfo]) -> int:
    """Hash the topics that exist."""
    return topic_hash.group_hash({name: _topic_hash(name, topics[name]) for name in present(names, topics)})


def update_patterns(decision: Decision, view: GroupView, now: int) -> bool:
    """Look patterns up that are due, and forget those of nobody; return whether that changes what members want."""
    group = decision.group
    if not group.regexes and not group.regex_subscribers:
        return False
    decision.write(
        build_regex_tombstone(group.id, regex) for regex in group.regexes.keys() - group.regex_subscribers.keys()
    )
    changed = False
    known, due = decision.group.regexes, _due(decision.group, view, now)
    # A group may have as many patterns as members, and each may take milliseconds: the others stay due.
    oldest = sorted((-_age_ms(known[regex], now), regex) for regex in due if regex in known)[:_LOOKED_UP]
    for regex in sorted([regex for regex in due if regex not in known] + [regex for _, regex in oldest]):
        found = matching(regex, view.topics)
        before = decision.group.regexes.get(regex, ResolvedRegex())
        changed = changed or found != before.topics
        decision.write([build_regex(group.id, regex, ResolvedRegex(found, view.topics_version, now))])
    return changed


def check_new_pattern(group: ConsumerGroup, regex: str) -> None:
    """Raise why a pattern that no member brought before cannot be subscribed to."""
    if not regex or regex in group.regex_subscribers:
        return
    try:
        check_pattern(regex)
    except InvalidPatternError as error:
        raise InvalidRegularExpressionError(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        ) from None


def update_epoch(decision: Decision, view: GroupView, *, changed: bool) -> None:
    """Raise the group's epoch when a subscription or the hash of its topics has changed."""
    group = decision.group
    seen = current_hash(group, view.topics)
    if changed or seen != group.metadata_hash:
        decision.write([build_epoch(group.id, group.epoch + 1, seen)])
        if group.has_partition_metadata:
            decision.write([build_partition_metadata_tombstone(group.id)])


def current_hash(group: ConsumerGroup, topics: Mapping[str, TopicInfo]) -> int:
    """Hash the group's topics. The hash is computed once for a group and a state of the cluster's topics."""
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
    """Return how long ago a pattern was looked up; one of the future was, before the clock was set back."""
    return now - resolved.timestamp_ms if now >= resolved.timestamp_ms else math.inf


def _topic_hash(name: str, topic: TopicInfo) -> int:
    found: int | None = topic.__dict__.get("_hash")
    if found is None:
        found = topic_hash.topic_hash(name, topic.topic_id, topic.racks or ((),) * topic.partitions)
        topic.__dict__["_hash"] = found
    return found
