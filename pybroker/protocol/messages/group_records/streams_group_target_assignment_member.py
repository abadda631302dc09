"""StreamsGroupTargetAssignmentMember (21) of `__consumer_offsets`: the target assignment of a member."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int32, string, versions


class StreamsGroupTargetAssignmentMemberKey(Message, api_key=21, kind="coordinator-key", versions="0", flexible="none"):
    """The group and the member."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""
    member_id: Annotated[str, string, versions("0"), about("The member.")] = ""


class TaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: Annotated[str, string, versions("0+"), about("The subtopology.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("The partitions of the tasks.")] = []


class StreamsGroupTargetAssignmentMemberValue(
    Message, api_key=21, kind="coordinator-value", versions="0", flexible="0+"
):
    """The tasks that the member should have."""

    active_tasks: Annotated[list[TaskIds], versions("0+"), about("Active tasks.")] = []
    standby_tasks: Annotated[list[TaskIds], versions("0+"), about("Standby tasks.")] = []
    warmup_tasks: Annotated[list[TaskIds], versions("0+"), about("Warm-up tasks.")] = []
