"""Metadata (3): the brokers, the topics and the leaders of their partitions."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    boolean,
    ignorable,
    int16,
    int32,
    map_key,
    nullable,
    string,
    uuid,
    versions,
)


class MetadataRequestTopic(Struct):
    """A requested topic, by name or by id."""

    topic_id: Annotated[bytes, uuid, versions("10+"), ignorable, about("Asked for by id, unless zero.")] = ZERO_UUID
    name: Annotated[str | None, string, versions("0+"), nullable("10+"), about("Asked for by name, unless null.")] = ""


class MetadataRequest(Message, api_key=3, kind="request", versions="0-13", flexible="9+"):
    """Requests brokers, topics and partition leaders."""

    topics: Annotated[
        list[MetadataRequestTopic] | None,
        versions("0+"),
        nullable("1+"),
        about("Null for all topics; in version 0 the empty array means all."),
    ] = []
    allow_auto_topic_creation: Annotated[
        bool, boolean, versions("4+"), about("Whether the broker may create what is missing.")
    ] = True
    include_cluster_authorized_operations: Annotated[
        bool, boolean, versions("8-10"), about("Whether to say what the client may do to the cluster.")
    ] = False
    include_topic_authorized_operations: Annotated[
        bool, boolean, versions("8+"), about("Whether to say what the client may do to each topic.")
    ] = False


class MetadataResponseBroker(Struct):
    """A broker and its address."""

    node_id: Annotated[int, int32, versions("0+"), map_key, about("The broker's id.")] = 0
    host: Annotated[str, string, versions("0+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, int32, versions("0+"), about("Port to connect to.")] = 0
    rack: Annotated[str | None, string, versions("1+"), nullable("1+"), ignorable, about("The broker's rack.")] = None


class MetadataResponsePartition(Struct):
    """A partition, its leader and its replicas."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    leader_id: Annotated[int, int32, versions("0+"), about("Broker id of the leader; -1 where there is none.")] = 0
    leader_epoch: Annotated[int, int32, versions("7+"), ignorable, about("Epoch of that leadership.")] = -1
    replica_nodes: Annotated[
        list[int], int32, versions("0+"), about("Brokers with a replica, the preferred leader first.")
    ] = []
    isr_nodes: Annotated[list[int], int32, versions("0+"), about("Brokers whose replica is in sync.")] = []
    offline_replicas: Annotated[
        list[int], int32, versions("5+"), ignorable, about("Brokers whose replica is offline.")
    ] = []


class MetadataResponseTopic(Struct):
    """A requested topic."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    name: Annotated[
        str | None, string, versions("0+"), nullable("12+"), map_key, about("Null where an unknown id was asked for.")
    ] = ""
    topic_id: Annotated[bytes, uuid, versions("10+"), ignorable, about("Zero where an unknown name was asked for.")] = (
        ZERO_UUID
    )
    is_internal: Annotated[
        bool, boolean, versions("1+"), ignorable, about("Whether the brokers use the topic for themselves.")
    ] = False
    partitions: Annotated[list[MetadataResponsePartition], versions("0+"), about("Its partitions.")] = []
    topic_authorized_operations: Annotated[
        int, int32, versions("8+"), about("A bit for each operation allowed; the lowest number where not asked.")
    ] = -2147483648


class MetadataResponse(Message, api_key=3, kind="response", versions="0-13", flexible="9+"):
    """Brokers, topics and partition leaders."""

    throttle_time_ms: Annotated[
        int, int32, versions("3+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    brokers: Annotated[list[MetadataResponseBroker], versions("0+"), about("The brokers to connect to.")] = []
    cluster_id: Annotated[str | None, string, versions("2+"), nullable("2+"), ignorable, about("The cluster's id.")] = (
        None
    )
    controller_id: Annotated[
        int, int32, versions("1+"), ignorable, about("Broker to send controller requests to.")
    ] = -1
    topics: Annotated[list[MetadataResponseTopic], versions("0+"), about("What was asked for.")] = []
    cluster_authorized_operations: Annotated[
        int, int32, versions("8-10"), about("A bit for each operation allowed; the lowest number where not asked.")
    ] = -2147483648
    error_code: Annotated[
        int, int16, versions("13+"), ignorable, about("Says that the client should bootstrap again (KIP-1102).")
    ] = 0
