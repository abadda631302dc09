"""ConsumerGroupHeartbeat (68): the only API that a member of a consumer group (KIP-848) needs for its membership."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, Struct, about, int16, int32, nullable, string, uuid, versions

FIRST_VERSION_WITH_MEMBERS_OWN_ID = 1
"""From this version on, the member generates its id. In version 0 the broker does (KIP-1082)."""


class TopicPartitions(Struct):
    """Partitions of a topic."""

    topic_id: Annotated[bytes, uuid, versions("0+"), about("The topic's id.")] = ZERO_UUID
    partitions: Annotated[list[int], int32, versions("0+"), about("Its partitions.")] = []


class ConsumerGroupHeartbeatRequest(Message, api_key=68, kind="request", versions="0-1", flexible="0+"):
    """Joins a group, renews the session, reports owned partitions or leaves (KIP-848)."""

    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    member_id: Annotated[
        str, string, versions("0+"), about("Made by the member itself, from version 1 (KIP-1082).")
    ] = ""
    member_epoch: Annotated[
        int, int32, versions("0+"), about("0 joins, -1 leaves, -2 leaves for a while as a static member.")
    ] = 0
    instance_id: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Set by a static member; null as before.")
    ] = None
    rack_id: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("The member's rack; null as before.")
    ] = None
    rebalance_timeout_ms: Annotated[
        int,
        int32,
        versions("0+"),
        about("How long it may take to give partitions back, in milliseconds; -1 as before."),
    ] = -1
    subscribed_topic_names: Annotated[
        list[str] | None, string, versions("0+"), nullable("0+"), about("Topics it wants; null as before.")
    ] = None
    subscribed_topic_regex: Annotated[
        str | None, string, versions("1+"), nullable("1+"), about("Pattern of topics it wants; null as before.")
    ] = None
    server_assignor: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Assignor it wishes for; null as before.")
    ] = None
    topic_partitions: Annotated[
        list[TopicPartitions] | None, versions("0+"), nullable("0+"), about("Partitions it has; null as before.")
    ] = None


class Assignment(Struct):
    """Partitions of several topics."""

    topic_partitions: Annotated[list[TopicPartitions], versions("0+"), about("The partitions.")] = []


class ConsumerGroupHeartbeatResponse(Message, api_key=68, kind="response", versions="0-1", flexible="0+"):
    """The member's epoch and target partitions."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = None
    member_id: Annotated[str | None, string, versions("0+"), nullable("0+"), about("The member.")] = None
    member_epoch: Annotated[int, int32, versions("0+"), about("The member's epoch now.")] = 0
    heartbeat_interval_ms: Annotated[
        int, int32, versions("0+"), about("When to send the next heartbeat, in milliseconds.")
    ] = 0
    assignment: Annotated[
        Assignment | None, versions("0+"), nullable("0+"), about("What it should have; null as before.")
    ] = None
