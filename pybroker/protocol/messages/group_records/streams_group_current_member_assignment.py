"""StreamsGroupCurrentMemberAssignment (22) of `__consumer_offsets`: a member's current assignment."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int8, int32, nullable, string, tag, versions


class StreamsGroupCurrentMemberAssignmentKey(
    Message, api_key=22, kind="coordinator-key", versions="0", flexible="none"
):
    """The group and the member."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""
    member_id: Annotated[str, string, versions("0"), about("The member.")] = ""


class TaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: Annotated[str, string, versions("0+"), about("The subtopology.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("The partitions of the tasks.")] = []
    assignment_epochs: Annotated[
        list[int] | None,
        int32,
        versions("0+"),
        nullable("0+"),
        tag(0, "0+"),
        about("The epoch in which each active task was assigned; older commits are rejected."),
    ] = []


class StreamsGroupCurrentMemberAssignmentValue(
    Message, api_key=22, kind="coordinator-value", versions="0", flexible="0+"
):
    """The member's epoch, state and tasks."""

    member_epoch: Annotated[int, int32, versions("0+"), about("The member's epoch.")] = 0
    previous_member_epoch: Annotated[
        int, int32, versions("0+"), about("The epoch before, which the member sends if the last response was lost.")
    ] = 0
    state: Annotated[int, int8, versions("0+"), about("A `MemberState`.")] = 0
    active_tasks: Annotated[list[TaskIds], versions("0+"), about("Active tasks.")] = []
    standby_tasks: Annotated[list[TaskIds], versions("0+"), about("Standby tasks.")] = []
    warmup_tasks: Annotated[list[TaskIds], versions("0+"), about("Warm-up tasks.")] = []
    active_tasks_pending_revocation: Annotated[list[TaskIds], versions("0+"), about("Active tasks to revoke.")] = []
    standby_tasks_pending_revocation: Annotated[list[TaskIds], versions("0+"), about("Standby tasks to revoke.")] = []
    warmup_tasks_pending_revocation: Annotated[list[TaskIds], versions("0+"), about("Warm-up tasks to revoke.")] = []
