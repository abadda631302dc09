"""The record ConsumerGroupTargetAssignmentMember (7) of `__consumer_offsets`: a member's target assignment."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    int32,
    string,
    uuid,
    versions,
)


class ConsumerGroupTargetAssignmentMemberKey(Message, api_key=7, kind="coordinator-key", versions="0", flexible="none"):
    """The group and the member."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""
    member_id: Annotated[str, string, versions("0"), about("The member.")] = ""


class TopicPartition(Struct):
    """Partitions of a topic."""

    topic_id: Annotated[bytes, uuid, versions("0+"), about("The topic's id.")] = ZERO_UUID
    partitions: Annotated[list[int], int32, versions("0+"), about("Its partitions.")] = []


class ConsumerGroupTargetAssignmentMemberValue(
    Message, api_key=7, kind="coordinator-value", versions="0", flexible="0+"
):
    """The member's target assignment."""

    topic_partitions: Annotated[list[TopicPartition], versions("0+"), about("The partitions.")] = []
