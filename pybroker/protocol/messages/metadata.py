"""The messages of Metadata."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
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
    """MetadataRequestTopic."""

    topic_id: Annotated[bytes, uuid, versions("10+"), ignorable] = ZERO_UUID
    name: Annotated[str | None, string, versions("0+"), nullable("10+")] = ""


class MetadataRequest(Message, api_key=3, kind="request", versions="0-13", flexible="9+"):
    """MetadataRequest."""

    topics: Annotated[list[MetadataRequestTopic] | None, versions("0+"), nullable("1+")] = []
    allow_auto_topic_creation: Annotated[bool, boolean, versions("4+")] = True
    include_cluster_authorized_operations: Annotated[bool, boolean, versions("8-10")] = False
    include_topic_authorized_operations: Annotated[bool, boolean, versions("8+")] = False


class MetadataResponseBroker(Struct):
    """MetadataResponseBroker."""

    node_id: Annotated[int, int32, versions("0+"), map_key] = 0
    host: Annotated[str, string, versions("0+")] = ""
    port: Annotated[int, int32, versions("0+")] = 0
    rack: Annotated[str | None, string, versions("1+"), nullable("1+"), ignorable] = None


class MetadataResponsePartition(Struct):
    """MetadataResponsePartition."""

    error_code: Annotated[int, int16, versions("0+")] = 0
    partition_index: Annotated[int, int32, versions("0+")] = 0
    leader_id: Annotated[int, int32, versions("0+")] = 0
    leader_epoch: Annotated[int, int32, versions("7+"), ignorable] = -1
    replica_nodes: Annotated[list[int], int32, versions("0+")] = []
    isr_nodes: Annotated[list[int], int32, versions("0+")] = []
    offline_replicas: Annotated[list[int], int32, versions("5+"), ignorable] = []


class MetadataResponseTopic(Struct):
    """MetadataResponseTopic."""

    error_code: Annotated[int, int16, versions("0+")] = 0
    name: Annotated[str | None, string, versions("0+"), nullable("12+"), map_key] = ""
    topic_id: Annotated[bytes, uuid, versions("10+"), ignorable] = ZERO_UUID
    is_internal: Annotated[bool, boolean, versions("1+"), ignorable] = False
    partitions: Annotated[list[MetadataResponsePartition], versions("0+")] = []
    topic_authorized_operations: Annotated[int, int32, versions("8+")] = -2147483648


class MetadataResponse(Message, api_key=3, kind="response", versions="0-13", flexible="9+"):
    """MetadataResponse."""

    throttle_time_ms: Annotated[int, int32, versions("3+"), ignorable] = 0
    brokers: Annotated[list[MetadataResponseBroker], versions("0+")] = []
    cluster_id: Annotated[str | None, string, versions("2+"), nullable("2+"), ignorable] = None
    controller_id: Annotated[int, int32, versions("1+"), ignorable] = -1
    topics: Annotated[list[MetadataResponseTopic], versions("0+")] = []
    cluster_authorized_operations: Annotated[int, int32, versions("8-10")] = -2147483648
    error_code: Annotated[int, int16, versions("13+"), ignorable] = 0
