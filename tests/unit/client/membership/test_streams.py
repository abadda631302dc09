from __future__ import annotations

from typing import Any

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.membership.events import CommitRefused, Left, Polled
from pybroker.client.membership.heartbeat_events import HeartbeatCompleted, HeartbeatLost, HeartbeatSent, Stalled
from pybroker.client.membership.heartbeat_member import MembershipState
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.client.membership.streams import StreamsMember, StreamsRules
from pybroker.client.membership.streams_events import (
    GroupTask,
    GroupTasks,
    ShutdownRequested,
    StreamsJoined,
    TasksReconciled,
)
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

TOPOLOGY = Topology(
    subtopologies=[
        Subtopology(subtopology_id="0", source_topics=["in"]),
        Subtopology(
            subtopology_id="1", source_topics=["table"], repartition_source_topics=[TopicInfo(name="app-repartition")]
        ),
    ]
)
RULES = StreamsRules(
    group_id="app", topology=TOPOLOGY, process_id="process", endpoint=("here", 7070), max_poll_interval_s=300.0
)


class Driven:
    """A member with the calls of its driver."""

    def __init__(self) -> None:
        self.member = StreamsMember(RULES, "member")
        self.now = 0.0

    @property
    def state(self) -> MembershipState:
        return self.member.membership.state

    def drive(self, event: object) -> Remedy:
        outcome = self.member.handle(event, self.now)
        self.member.apply(outcome.membership)
        return outcome.remedy

    def beat(self, **response: Any) -> Remedy:
        request = self.member.build_heartbeat()
        self.drive(HeartbeatSent(request))
        fields: dict[str, Any] = {"member_epoch": 1, "heartbeat_interval_ms": 5_000, **response}
        return self.drive(HeartbeatCompleted(request.member_epoch, StreamsGroupHeartbeatResponse(**fields)))

    def assign(self, active: dict[str, list[int]], **others: Any) -> None:
        tasks = [TaskIds(subtopology_id=name, partitions=partitions) for name, partitions in active.items()]
        self.beat(active_tasks=tasks, standby_tasks=[], warmup_tasks=[], **others)

    def reconcile(self) -> RebalanceStep | None:
        step = self.member.rebalance_step()
        if step is not None:
            self.drive(TasksReconciled(step, self.member.membership.target))
        return step


def _joined() -> Driven:
    driven = Driven()
    driven.drive(StreamsJoined())
    return driven


def test_a_joining_member_sends_its_topology_and_process() -> None:
    driven = _joined()
    request = driven.member.build_heartbeat()
    assert (request.member_epoch, request.topology, request.process_id) == (0, TOPOLOGY, "process")
    assert (request.active_tasks, request.standby_tasks, request.warmup_tasks) == ([], [], [])
    assert request.user_endpoint is not None
    assert (request.user_endpoint.host, request.user_endpoint.port) == ("here", 7070)
    assert request.rebalance_timeout_ms == 300_000
    driven.beat()
    later = driven.member.build_heartbeat()
    assert (later.member_epoch, later.topology, later.process_id, later.active_tasks) == (1, None, None, None)


def test_tasks_stand_for_partitions_of_source_and_repartition_topics() -> None:
    driven = _joined()
    driven.assign({"0": [2], "1": [0]})
    step = driven.reconcile()
    assert step == RebalanceStep(
        assigned=frozenset({TopicPartition("in", 2), TopicPartition("table", 0), TopicPartition("app-repartition", 0)})
    )
    assert driven.state is MembershipState.ACKNOWLEDGING
    request = driven.member.build_heartbeat()
    assert request.active_tasks == [
        TaskIds(subtopology_id="0", partitions=[2]),
        TaskIds(subtopology_id="1", partitions=[0]),
    ]
    driven.beat()
    assert driven.state is MembershipState.STABLE
    assert driven.member.build_heartbeat().active_tasks is None


def test_a_task_that_moves_is_revoked_and_acknowledged() -> None:
    driven = _joined()
    driven.assign({"0": [0, 1]})
    driven.reconcile()
    driven.beat()
    driven.assign({"0": [1]}, member_epoch=2)
    step = driven.reconcile()
    assert step == RebalanceStep(revoked=frozenset({TopicPartition("in", 0)}), assigned=frozenset())
    assert driven.member.membership.owned.active == {GroupTask("0", 1)}


def test_standby_tasks_alone_are_a_step_without_partitions() -> None:
    driven = _joined()
    driven.beat(active_tasks=[], standby_tasks=[TaskIds(subtopology_id="0", partitions=[3])], warmup_tasks=[])
    assert driven.reconcile() == RebalanceStep(assigned=frozenset())
    assert driven.member.membership.owned == GroupTasks(standby=frozenset({GroupTask("0", 3)}))


def test_an_empty_assignment_needs_no_step() -> None:
    driven = _joined()
    driven.assign({})
    assert (driven.state, driven.member.rebalance_step()) == (MembershipState.STABLE, None)
    assert driven.member.membership.is_ready


def test_a_fenced_member_gives_up_its_tasks_and_joins_again() -> None:
    driven = _joined()
    driven.assign({"0": [0]})
    driven.reconcile()
    driven.beat()
    assert driven.beat(error_code=ErrorCode.FENCED_MEMBER_EPOCH) is Remedy.NONE
    assert driven.reconcile() == RebalanceStep(lost=frozenset({TopicPartition("in", 0)}))
    assert (driven.state, driven.member.build_heartbeat().topology) == (MembershipState.JOINING, TOPOLOGY)


def test_an_invalid_topology_is_fatal_and_a_loading_coordinator_is_not() -> None:
    driven = _joined()
    assert driven.beat(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) is Remedy.WAIT
    assert driven.beat(error_code=ErrorCode.NOT_COORDINATOR) is Remedy.SEARCH
    assert driven.beat(error_code=ErrorCode.INVALID_REQUEST) is Remedy.FAIL
    assert driven.state is MembershipState.FATAL


def test_a_lost_heartbeat_is_sent_whole_again() -> None:
    driven = _joined()
    driven.assign({"0": [0]})
    driven.reconcile()
    driven.drive(HeartbeatSent(driven.member.build_heartbeat()))
    assert driven.member.build_heartbeat().active_tasks is None
    driven.drive(HeartbeatLost())
    assert driven.member.build_heartbeat().active_tasks == [TaskIds(subtopology_id="0", partitions=[0])]


def test_a_program_that_does_not_poll_leaves_and_joins_again_when_it_polls() -> None:
    driven = _joined()
    driven.now = 301.0
    assert driven.member.has_stalled(driven.now)
    driven.drive(Stalled())
    assert driven.state is MembershipState.STALE
    driven.drive(Polled())
    assert driven.state is MembershipState.FENCED


def test_a_refused_commit_has_the_next_heartbeat_sent_at_once() -> None:
    driven = _joined()
    driven.assign({})
    assert driven.member.heartbeat_at() > 0
    driven.drive(CommitRefused(ErrorCode.STALE_MEMBER_EPOCH, 1))
    assert driven.member.heartbeat_at() < 0


def test_the_shutdown_of_the_application_is_part_of_heartbeats() -> None:
    driven = _joined()
    driven.drive(ShutdownRequested())
    assert driven.member.build_heartbeat().shutdown_application
    driven.drive(Left())
    assert driven.member.build_leave().member_epoch == -1
