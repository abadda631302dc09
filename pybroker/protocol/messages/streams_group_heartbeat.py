"""StreamsGroupHeartbeat (88): the only API that a member of a streams group (KIP-1071) needs for its membership."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    boolean,
    field,
    ignorable,
    int8,
    int16,
    int32,
    int64,
    nullable,
    string,
    uint16,
    versions,
)


class KeyValue(Struct):
    """A key and its value."""

    key: Annotated[str, string, versions("0+"), about("The key.")] = ""
    value: Annotated[str, string, versions("0+"), about("The value.")] = ""


class TopicInfo(Struct):
    """An internal topic."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[
        int, int32, versions("0+"), about("Number of partitions; 0 if the broker decides, and for changelog topics.")
    ] = 0
    replication_factor: Annotated[int, int16, versions("0+"), about("Replication factor; 0 for the default.")] = 0
    topic_configs: Annotated[list[KeyValue], versions("0+"), about("Configuration of the topic.")] = []


class CopartitionGroup(Struct):
    """Source topics that must have the same number of partitions, as indexes into the subtopology's lists."""

    source_topics: Annotated[list[int], int16, versions("0+"), about("Indexes of source topics.")] = []
    source_topic_regex: Annotated[list[int], int16, versions("0+"), about("Indexes of patterns.")] = []
    repartition_source_topics: Annotated[list[int], int16, versions("0+"), about("Indexes of repartition topics.")] = []


class Subtopology(Struct):
    """A part of a topology whose tasks are independent of other parts."""

    subtopology_id: Annotated[str, string, versions("0+"), about("The subtopology.")] = ""
    source_topics: Annotated[list[str], string, versions("0+"), about("Source topics.")] = []
    source_topic_regex: Annotated[list[str], string, versions("0+"), about("Patterns of source topics.")] = []
    state_changelog_topics: Annotated[list[TopicInfo], versions("0+"), about("Changelog topics of its stores.")] = []
    repartition_sink_topics: Annotated[
        list[str], string, versions("0+"), about("Repartition topics that it writes.")
    ] = []
    repartition_source_topics: Annotated[
        list[TopicInfo], versions("0+"), about("Repartition topics that it reads.")
    ] = []
    copartition_groups: Annotated[
        list[CopartitionGroup], versions("0+"), about("Source topics that must have the same number of partitions.")
    ] = []


class Topology(Struct):
    """The topology of a streams application."""

    epoch: Annotated[int, int32, versions("0+"), about("The epoch of the topology.")] = 0
    subtopologies: Annotated[list[Subtopology], versions("0+"), about("The subtopologies.")] = []


class TaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: Annotated[str, string, versions("0+"), about("The subtopology.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("The partitions of the tasks.")] = []


class Endpoint(Struct):
    """An address for interactive queries."""

    host: Annotated[str, string, versions("0+"), about("The host.")] = ""
    port: Annotated[int, uint16, versions("0+"), about("The port.")] = 0


class TaskOffset(Struct):
    """The offset of a task."""

    subtopology_id: Annotated[str, string, versions("0+"), about("The subtopology.")] = ""
    partition: Annotated[int, int32, versions("0+"), about("The partition.")] = 0
    offset: Annotated[int, int64, versions("0+"), about("The offset.")] = 0


class StreamsGroupHeartbeatRequest(Message, api_key=88, kind="request", versions="0-1", flexible="0+"):
    """Joins a group, renews the session, reports owned tasks or leaves (KIP-1071)."""

    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    member_id: Annotated[str, string, versions("0+"), about("The member, by an id that it generates itself.")] = ""
    member_epoch: Annotated[
        int, int32, versions("0+"), about("0 joins, -1 leaves, -2 leaves temporarily as a static member.")
    ] = 0
    endpoint_information_epoch: Annotated[
        int, int32, versions("0+"), about("The last epoch of the endpoint information that it received.")
    ] = 0
    instance_id: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Set by a static member; null if unchanged.")
    ] = None
    rack_id: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("The member's rack; null if unchanged.")
    ] = None
    rebalance_timeout_ms: Annotated[
        int, int32, versions("0+"), about("Maximum time to revoke tasks, in milliseconds; -1 if unchanged.")
    ] = -1
    topology: Annotated[
        Topology | None, versions("0+"), nullable("0+"), about("The member's topology, when it joins; null otherwise.")
    ] = None
    active_tasks: Annotated[
        list[TaskIds] | None, versions("0+"), nullable("0+"), about("Owned active tasks; null if unchanged.")
    ] = None
    standby_tasks: Annotated[
        list[TaskIds] | None, versions("0+"), nullable("0+"), about("Owned standby tasks; null if unchanged.")
    ] = None
    warmup_tasks: Annotated[
        list[TaskIds] | None, versions("0+"), nullable("0+"), about("Owned warm-up tasks; null if unchanged.")
    ] = None
    process_id: Annotated[
        str | None,
        string,
        versions("0+"),
        nullable("0+"),
        about("The process of the member, which may have several members; null if unchanged."),
    ] = None
    user_endpoint: Annotated[
        Endpoint | None,
        versions("0+"),
        nullable("0+"),
        about("Endpoint for interactive queries; null if unchanged or absent."),
    ] = None
    client_tags: Annotated[
        list[KeyValue] | None,
        versions("0+"),
        nullable("0+"),
        about("Tags for rack-aware assignment; null if unchanged."),
    ] = None
    task_offsets: Annotated[
        list[TaskOffset] | None,
        versions("0+"),
        nullable("0+"),
        about("Sum of the changelog offsets of each task; null if unchanged."),
    ] = None
    task_end_offsets: Annotated[
        list[TaskOffset] | None,
        versions("0+"),
        nullable("0+"),
        about("Sum of the changelog end offsets of each task; null if unchanged."),
    ] = None
    shutdown_application: Annotated[
        bool, boolean, versions("0+"), about("Whether all members of the group should shut down.")
    ] = False


class Status(Struct):
    """A condition of the group."""

    status_code: Annotated[int, int8, versions("0+"), about("A `StatusCode`.")] = 0
    status_detail: Annotated[str, string, versions("0+"), about("Description of the condition.")] = ""


class TopicPartition(Struct):
    """Partitions of a topic."""

    topic: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("Its partitions.")] = []


class EndpointToPartitions(Struct):
    """The partitions of a member with an endpoint."""

    user_endpoint: Annotated[Endpoint, versions("0+"), about("The endpoint.")] = field(default_factory=Endpoint)
    active_partitions: Annotated[
        list[TopicPartition], versions("0+"), about("Source partitions of its active tasks.")
    ] = []
    standby_partitions: Annotated[
        list[TopicPartition], versions("0+"), about("Source partitions of its standby and warm-up tasks.")
    ] = []


class StreamsGroupHeartbeatResponse(Message, api_key=88, kind="response", versions="0-1", flexible="0+"):
    """The member's epoch, its tasks, and the status of the group."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 if there was no error.")] = 0
    error_message: Annotated[str | None, string, versions("0+"), nullable("0+"), about("Description of the error.")] = (
        None
    )
    member_id: Annotated[str, string, versions("0+"), about("The member.")] = ""
    member_epoch: Annotated[int, int32, versions("0+"), about("The member's epoch.")] = 0
    heartbeat_interval_ms: Annotated[
        int, int32, versions("0+"), about("Interval until the next heartbeat, in milliseconds.")
    ] = 0
    acceptable_recovery_lag_legacy: Annotated[
        int, int32, versions("0"), about("A task with at most this lag is considered caught up.")
    ] = 0
    task_offset_interval_ms: Annotated[
        int, int32, versions("0+"), about("Interval between reports of task offsets, in milliseconds.")
    ] = 0
    acceptable_recovery_lag: Annotated[
        int, int64, versions("1+"), ignorable, about("A task with at most this lag is considered caught up.")
    ] = -1
    status: Annotated[
        list[Status] | None,
        versions("0+"),
        nullable("0+"),
        about("Conditions of the group that the member should know."),
    ] = []
    active_tasks: Annotated[
        list[TaskIds] | None, versions("0+"), nullable("0+"), about("Assigned active tasks; null if unchanged.")
    ] = None
    standby_tasks: Annotated[
        list[TaskIds] | None, versions("0+"), nullable("0+"), about("Assigned standby tasks; null if unchanged.")
    ] = None
    warmup_tasks: Annotated[
        list[TaskIds] | None, versions("0+"), nullable("0+"), about("Assigned warm-up tasks; null if unchanged.")
    ] = None
    topology_description_required: Annotated[
        bool, boolean, versions("1+"), about("Whether the client should send a description of its topology.")
    ] = False
    endpoint_information_epoch: Annotated[
        int, int32, versions("0+"), about("The epoch of the endpoint information.")
    ] = 0
    partitions_by_user_endpoint: Annotated[
        list[EndpointToPartitions] | None,
        versions("0+"),
        nullable("0+"),
        about("Partitions of each endpoint, for interactive queries; null if unchanged."),
    ] = None
