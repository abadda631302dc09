"""ConsumerGroupCurrentMemberAssignment (8) of `__consumer_offsets`: a member's current assignment."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    int8,
    int32,
    nullable,
    string,
    tag,
    uuid,
    versions,
)


class ConsumerGroupCurrentMemberAssignmentKey(
    Message, api_key=8, kind="coordinator-key", versions="0", flexible="none"
):
    """The group and the member."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""
    member_id: Annotated[str, string, versions("0"), about("The member.")] = ""


class TopicPartitions(Struct):
    """Partitions of a topic."""

    topic_id: Annotated[bytes, uuid, versions("0+"), about("The topic's id.")] = ZERO_UUID
    partitions: Annotated[list[int], int32, versions("0+"), about("Its partitions.")] = []
    assignment_epochs: Annotated[
        list[int] | None,
        int32,
        versions("0+"),
        nullable("0+"),
        tag(0, "0+"),
        about("The member epoch that each was given in: older commits of it are refused (KIP-1251)."),
    ] = []


class ConsumerGroupCurrentMemberAssignmentValue(
    Message, api_key=8, kind="coordinator-value", versions="0", flexible="0+"
):
    """The member's epoch, state and partitions."""

    member_epoch: Annotated[int, int32, versions("0+"), about("The epoch that its heartbeats have to name.")] = 0
    previous_member_epoch: Annotated[
        int, int32, versions("0+"), about("The one before: named still when the answer with the new one was lost.")
    ] = 0
    state: Annotated[int, int8, versions("0+"), about("A `MemberState`.")] = 0
    assigned_partitions: Annotated[list[TopicPartitions], versions("0+"), about("What it has and is to keep.")] = []
    partitions_pending_revocation: Annotated[
        list[TopicPartitions], versions("0+"), about("What it has and is to give back.")
    ] = []
