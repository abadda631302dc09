"""StreamsGroupDescribe (89): describes groups of the streams protocol."""

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


class StreamsGroupDescribeRequest(Message, api_key=89, kind="request", versions="0-1", flexible="0+"):
    """Requests groups of the streams protocol (KIP-1071), their topology and members."""

    group_ids: Annotated[list[str], string, versions("0+"), about("The groups to describe.")] = []
    include_authorized_operations: Annotated[
        bool, boolean, versions("0+"), about("Whether to return the operations that the client is allowed.")
    ] = False
    include_topology_description: Annotated[
        bool, boolean, versions("1+"), about("Whether to return the description of the topology.")
    ] = False


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


class Subtopology(Struct):
    """A part of a topology whose tasks are independent of other parts."""

    subtopology_id: Annotated[str, string, versions("0+"), about("The subtopology.")] = ""
    source_topics: Annotated[list[str], string, versions("0+"), about("Source topics.")] = []
    repartition_sink_topics: Annotated[
        list[str], string, versions("0+"), about("Repartition topics that it writes.")
    ] = []
    state_changelog_topics: Annotated[list[TopicInfo], versions("0+"), about("Changelog topics of its stores.")] = []
    repartition_source_topics: Annotated[
        list[TopicInfo], versions("0+"), about("Repartition topics that it reads.")
    ] = []


class Topology(Struct):
    """The topology of a streams application."""

    epoch: Annotated[int, int32, versions("0+"), about("The epoch of the topology.")] = 0
    subtopologies: Annotated[list[Subtopology] | None, versions("0+"), nullable("0+"), about("The subtopologies.")] = (
        None
    )


class Endpoint(Struct):
    """An address for interactive queries."""

    host: Annotated[str, string, versions("0+"), about("The host.")] = ""
    port: Annotated[int, uint16, versions("0+"), about("The port.")] = 0


class TaskOffset(Struct):
    """The offset of a task."""

    subtopology_id: Annotated[str, string, versions("0+"), about("The subtopology.")] = ""
    partition: Annotated[int, int32, versions("0+"), about("The partition.")] = 0
    offset: Annotated[int, int64, versions("0+"), about("The offset.")] = 0


class TaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: Annotated[str, string, versions("0+"), about("The subtopology.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("The partitions of the tasks.")] = []


class Assignment(Struct):
    """Tasks of a member."""

    active_tasks: Annotated[list[TaskIds], versions("0+"), about("Active tasks.")] = []
    standby_tasks: Annotated[list[TaskIds], versions("0+"), about("Standby tasks.")] = []
    warmup_tasks: Annotated[list[TaskIds], versions("0+"), about("Warm-up tasks.")] = []


class Member(Struct):
    """A member of a group."""

    member_id: Annotated[str, string, versions("0+"), about("The member.")] = ""
    member_epoch: Annotated[int, int32, versions("0+"), about("The member's epoch.")] = 0
    instance_id: Annotated[str | None, string, versions("0+"), nullable("0+"), about("Set by a static member.")] = None
    rack_id: Annotated[str | None, string, versions("0+"), nullable("0+"), about("The member's rack.")] = None
    client_id: Annotated[str, string, versions("0+"), about("The client's id.")] = ""
    client_host: Annotated[str, string, versions("0+"), about("The client's address.")] = ""
    topology_epoch: Annotated[int, int32, versions("0+"), about("The epoch of the member's topology.")] = 0
    process_id: Annotated[
        str, string, versions("0+"), about("The process of the member; a process may have several members.")
    ] = ""
    user_endpoint: Annotated[
        Endpoint | None, versions("0+"), nullable("0+"), about("Endpoint of the process for interactive queries.")
    ] = None
    client_tags: Annotated[list[KeyValue], versions("0+"), about("Tags for rack-aware assignment.")] = []
    task_offsets: Annotated[list[TaskOffset], versions("0+"), about("Sum of the changelog offsets of each task.")] = []
    task_end_offsets: Annotated[
        list[TaskOffset], versions("0+"), about("Sum of the changelog end offsets of each task.")
    ] = []
    assignment: Annotated[Assignment, versions("0+"), about("The current assignment.")] = field(
        default_factory=Assignment
    )
    target_assignment: Annotated[Assignment, versions("0+"), about("The target assignment.")] = field(
        default_factory=Assignment
    )
    is_classic: Annotated[bool, boolean, versions("0+"), about("Whether the member uses the classic protocol.")] = False


class TopologyDescriptionNode(Struct):
    """A node of a topology."""

    name: Annotated[str, string, versions("1+"), about("The name of the node.")] = ""
    node_type: Annotated[int, int8, versions("1+"), about("1 source, 2 processor, 3 sink.")] = 0
    source_topics: Annotated[list[str], string, versions("1+"), about("Source topics.")] = []
    sink_topic: Annotated[str | None, string, versions("1+"), nullable("1+"), about("Topic that a sink writes.")] = None
    stores: Annotated[list[str], string, versions("1+"), about("Stores of a processor.")] = []
    successors: Annotated[list[str], string, versions("1+"), about("Names of the next nodes.")] = []


class TopologyDescriptionSubtopology(Struct):
    """A subtopology in a description."""

    subtopology_id: Annotated[str, string, versions("1+"), about("The subtopology.")] = ""
    nodes: Annotated[list[TopologyDescriptionNode], versions("1+"), about("The nodes.")] = []


class TopologyDescriptionGlobalStore(Struct):
    """A global store."""

    source: Annotated[TopologyDescriptionNode, versions("1+"), about("The source node.")] = field(
        default_factory=TopologyDescriptionNode
    )
    processor: Annotated[TopologyDescriptionNode, versions("1+"), about("The processor node.")] = field(
        default_factory=TopologyDescriptionNode
    )


class TopologyDescription(Struct):
    """A description of a topology."""

    subtopologies: Annotated[list[TopologyDescriptionSubtopology], versions("1+"), about("The subtopologies.")] = []
    global_stores: Annotated[list[TopologyDescriptionGlobalStore], versions("1+"), about("The global stores.")] = []


class DescribedGroup(Struct):
    """A group, its topology and members."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 if there was no error.")] = 0
    error_message: Annotated[str | None, string, versions("0+"), nullable("0+"), about("Description of the error.")] = (
        None
    )
    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    group_state: Annotated[str, string, versions("0+"), about("State of the group.")] = ""
    group_epoch: Annotated[int, int32, versions("0+"), about("Increases when the members or the topology change.")] = 0
    assignment_epoch: Annotated[int, int32, versions("0+"), about("The group epoch of the target assignment.")] = 0
    topology: Annotated[
        Topology | None, versions("0+"), nullable("0+"), about("The topology; null if there was an error.")
    ] = None
    members: Annotated[list[Member], versions("0+"), about("Its members.")] = []
    authorized_operations: Annotated[
        int, int32, versions("0+"), about("A bit for each allowed operation; the lowest number if not requested.")
    ] = -2147483648
    topology_description: Annotated[
        TopologyDescription | None,
        versions("1+"),
        nullable("1+"),
        about("The description of the topology; null unless available."),
    ] = None
    topology_description_status: Annotated[
        int, int8, versions("1+"), about("0 not requested, 1 not stored, 2 error, 3 available.")
    ] = 0
    assignor_name: Annotated[
        str | None, string, versions("1+"), nullable("1+"), ignorable, about("The assignor of the next assignment.")
    ] = None


class StreamsGroupDescribeResponse(Message, api_key=89, kind="response", versions="0-1", flexible="0+"):
    """Groups, their topology and members."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    groups: Annotated[list[DescribedGroup], versions("0+"), about("One result for each group.")] = []
