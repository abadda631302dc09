"""A member of a group of KIP-848: heartbeats carry its subscription to the coordinator, and assignments back.

Owns the content of a heartbeat. Topics are ids here; the driver resolves them by metadata requests. The states of a
member are those of `heartbeat_member`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.membership.heartbeat_member import (
    COMMON_DECISIONS,
    JOIN_EPOCH,
    LEAVE_EPOCH,
    Decisions,
    HeartbeatMember,
    HeartbeatMembership,
    MemberRules,
    MembershipState,
    complete_step,
    join,
)
from pybroker.client.membership.modern_events import GroupSubscription, IdGiven, StepDone, Subscribed
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

LEAVE_FOR_A_WHILE_EPOCH = -2
NOTHING: frozenset[TopicPartition] = frozenset()

ById = dict[bytes, frozenset[int]]
"""Partitions by topic id."""


class ModernMembership(HeartbeatMembership[ById], kw_only=True):
    """The state of a member. Assignments are by topic id."""

    partitions: frozenset[TopicPartition] = NOTHING
    """The partitions of the program. Only rebalance steps change them."""
    subscription: GroupSubscription = GroupSubscription()
    sent_subscription: GroupSubscription | None = None
    """The subscription that the coordinator knows; None before the first heartbeat."""

    def forget(self) -> None:
        """End the membership; the program keeps its partitions."""
        super().forget()
        self.owned = self.nothing

    def forget_sent(self) -> None:
        """Have the next heartbeat contain the fields that are sent only when they change."""
        super().forget_sent()
        self.sent_subscription = None

    def record_sent(self, request: ConsumerGroupHeartbeatRequest) -> None:
        """Record the content of a heartbeat as known to the coordinator."""
        super().record_sent(request)
        self.sent_subscription = self.subscription

    def read(self, response: ConsumerGroupHeartbeatResponse) -> ById | None:
        """Return the target assignment of a response, if any."""
        if response.assignment is None:
            return None
        return {t.topic_id: frozenset(t.partitions) for t in response.assignment.topic_partitions if t.partitions}


class ModernMember(HeartbeatMember[ModernMembership, MemberRules]):
    """One member. Times are seconds of any monotonic clock."""

    def __init__(self, rules: MemberRules, member_id: str) -> None:
        super().__init__(rules, ModernMembership(member_id=member_id, nothing={}, owned={}, target={}), DECISIONS)

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Return the partitions of the program."""
        return self.membership.partitions

    def rebalance_step(self, names: Mapping[bytes, str]) -> RebalanceStep | None:
        """Return the step that the program must do now. Topics with unknown names are not included yet."""
        it = self.membership
        if it.state is MembershipState.FENCED:
            return RebalanceStep(lost=it.partitions)
        if it.state is MembershipState.RECONCILING:
            wanted = _named(it.target, names)
            if wanted != it.partitions or it.owned != _resolvable(it.target, names):
                return RebalanceStep(revoked=it.partitions - wanted, assigned=wanted - it.partitions)
        return None

    def build_heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        """Build a heartbeat: all fields when joining, else those that have changed since the last one."""
        it = self.membership
        joins = it.epoch == JOIN_EPOCH
        subscription, sent = it.subscription, None if joins else it.sent_subscription
        request = self._build_request(it.epoch)
        if sent is None:
            request.rebalance_timeout_ms = round(self.rules.max_poll_interval_s * 1000)
            request.rack_id = subscription.rack
            request.server_assignor = subscription.assignor
        if sent is None or (subscription.topics, subscription.regex) != (sent.topics, sent.regex):
            request.subscribed_topic_names = list(subscription.topics)
            # An empty expression removes the previous one.
            request.subscribed_topic_regex = subscription.regex or ("" if sent is not None and sent.regex else None)
        if joins:
            request.topic_partitions = []
        elif it.owned != it.sent:
            request.topic_partitions = [
                TopicPartitions(topic_id=topic_id, partitions=sorted(indexes)) for topic_id, indexes in it.owned.items()
            ]
        return request

    def build_leave(self) -> ConsumerGroupHeartbeatRequest:
        """Build the heartbeat that leaves the group. The group keeps a static member for its session timeout."""
        return self._build_request(LEAVE_EPOCH if self.rules.instance_id is None else LEAVE_FOR_A_WHILE_EPOCH)

    def _build_request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        rules = self.rules
        return ConsumerGroupHeartbeatRequest(
            group_id=rules.group_id, member_id=self.member_id, member_epoch=epoch, instance_id=rules.instance_id
        )


def _subscribed(it: ModernMembership, event: Subscribed, now: float) -> Remedy:
    it.subscription = event.subscription
    join(it, now)
    return Remedy.NONE


def _step_done(it: ModernMembership, event: StepDone, now: float) -> Remedy:
    step = event.step
    it.partitions = (it.partitions - step.lost - step.revoked) | (step.assigned or NOTHING)
    if it.state is MembershipState.RECONCILING and step.assigned is not None:
        ids = {name: topic_id for topic_id, name in event.names.items()}
        it.owned = _by_id(it.partitions, ids)
    complete_step(it, step, now)
    return Remedy.NONE


def _id_given(it: ModernMembership, event: IdGiven, _now: float) -> Remedy:
    it.member_id = event.member_id
    return Remedy.NONE


DECISIONS: Decisions = {
    **COMMON_DECISIONS,
    IdGiven: _id_given,
    StepDone: _step_done,
    Subscribed: _subscribed,
}
"""The decision function of each event, which changes a copy of the membership."""


def _resolvable(target: ById, names: Mapping[bytes, str]) -> ById:
    return {topic_id: partitions for topic_id, partitions in target.items() if topic_id in names}


def _named(target: ById, names: Mapping[bytes, str]) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(names[t], index) for t, indexes in _resolvable(target, names).items() for index in indexes
    )


def _by_id(partitions: frozenset[TopicPartition], ids: Mapping[str, bytes]) -> ById:
    found: dict[bytes, set[int]] = {}
    for partition in partitions:
        found.setdefault(ids[partition.topic], set()).add(partition.partition)
    return {topic_id: frozenset(indexes) for topic_id, indexes in found.items()}
