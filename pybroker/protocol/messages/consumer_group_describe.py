"""ConsumerGroupDescribe (69): describes groups of the consumer protocol."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    boolean,
    field,
    ignorable,
    int8,
    int16,
    int32,
    nullable,
    string,
    uuid,
    versions,
)


class ConsumerGroupDescribeRequest(Message, api_key=69, kind="request", versions="0-1", flexible="0+"):
    """Requests groups of the consumer protocol (KIP-848) and their members."""

    group_ids: Annotated[list[str], string, versions("0+"), about("The groups asked about.")] = []
    include_authorized_operations: Annotated[
        bool, boolean, versions("0+"), about("Whether to say what the client may do to each group.")
    ] = False


class TopicPartitions(Struct):
    """Partitions of a topic."""

    topic_id: Annotated[bytes, uuid, versions("0+"), about("The topic's id.")] = ZERO_UUID
    topic_name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("Its partitions.")] = []


class Assignment(Struct):
    """Partitions of several topics."""

    topic_partitions: Annotated[list[TopicPartitions], versions("0+"), about("The partitions.")] = []


class Member(Struct):
    """A member of a group."""

    member_id: Annotated[str, string, versions("0+"), about("The member.")] = ""
    instance_id: Annotated[str | None, string, versions("0+"), nullable("0+"), about("Set by a static member.")] = None
    rack_id: Annotated[str | None, string, versions("0+"), nullable("0+"), about("The member's rack.")] = None
    member_epoch: Annotated[int, int32, versions("0+"), about("The member's epoch.")] = 0
    client_id: Annotated[str, string, versions("0+"), about("The client's name for itself.")] = ""
    client_host: Annotated[str, string, versions("0+"), about("Where it connects from.")] = ""
    subscribed_topic_names: Annotated[list[str], string, versions("0+"), about("Topics it wants.")] = []
    subscribed_topic_regex: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Pattern of topics it wants.")
    ] = None
    assignment: Annotated[Assignment, versions("0+"), about("What it has.")] = field(default_factory=Assignment)
    target_assignment: Annotated[Assignment, versions("0+"), about("What it is to have.")] = field(
        default_factory=Assignment
    )
    member_type: Annotated[int, int8, versions("1+"), ignorable, about("0 classic, 1 consumer, -1 unknown.")] = -1


class DescribedGroup(Struct):
    """A group and its members."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = None
    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    group_state: Annotated[str, string, versions("0+"), about("State of the group.")] = ""
    group_epoch: Annotated[int, int32, versions("0+"), about("Grows when members or subscriptions change.")] = 0
    assignment_epoch: Annotated[
        int, int32, versions("0+"), about("The group epoch that the target assignment was made for.")
    ] = 0
    assignor_name: Annotated[str, string, versions("0+"), about("The assignor in use.")] = ""
    members: Annotated[list[Member], versions("0+"), about("Its members.")] = []
    authorized_operations: Annotated[
        int, int32, versions("0+"), about("A bit for each operation allowed; the lowest number where not asked.")
    ] = -2147483648


class ConsumerGroupDescribeResponse(Message, api_key=69, kind="response", versions="0-1", flexible="0+"):
    """Groups and their members."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    groups: Annotated[list[DescribedGroup], versions("0+"), about("One result for each group.")] = []
