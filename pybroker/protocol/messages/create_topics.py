"""The messages of CreateTopics."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    boolean,
    ignorable,
    int8,
    int16,
    int32,
    map_key,
    nullable,
    string,
    tag,
    uuid,
    versions,
)


class CreatableReplicaAssignment(Struct):
    """CreatableReplicaAssignment."""

    partition_index: Annotated[int, int32, versions("0+"), map_key] = 0
    broker_ids: Annotated[list[int], int32, versions("0+")] = []


class CreatableTopicConfig(Struct):
    """CreatableTopicConfig."""

    name: Annotated[str, string, versions("0+"), map_key] = ""
    value: Annotated[str | None, string, versions("0+"), nullable("0+")] = ""


class CreatableTopic(Struct):
    """CreatableTopic."""

    name: Annotated[str, string, versions("0+"), map_key] = ""
    num_partitions: Annotated[int, int32, versions("0+")] = 0
    replication_factor: Annotated[int, int16, versions("0+")] = 0
    assignments: Annotated[list[CreatableReplicaAssignment], versions("0+")] = []
    configs: Annotated[list[CreatableTopicConfig], versions("0+")] = []


class CreateTopicsRequest(Message, api_key=19, kind="request", versions="2-7", flexible="5+"):
    """CreateTopicsRequest."""

    topics: Annotated[list[CreatableTopic], versions("0+")] = []
    timeout_ms: Annotated[int, int32, versions("0+")] = 60000
    validate_only: Annotated[bool, boolean, versions("1+")] = False


class CreatableTopicConfigs(Struct):
    """CreatableTopicConfigs."""

    name: Annotated[str, string, versions("5+")] = ""
    value: Annotated[str | None, string, versions("5+"), nullable("5+")] = ""
    read_only: Annotated[bool, boolean, versions("5+")] = False
    config_source: Annotated[int, int8, versions("5+"), ignorable] = -1
    is_sensitive: Annotated[bool, boolean, versions("5+")] = False


class CreatableTopicResult(Struct):
    """CreatableTopicResult."""

    name: Annotated[str, string, versions("0+"), map_key] = ""
    topic_id: Annotated[bytes, uuid, versions("7+"), ignorable] = ZERO_UUID
    error_code: Annotated[int, int16, versions("0+")] = 0
    error_message: Annotated[str | None, string, versions("1+"), nullable("0+"), ignorable] = ""
    topic_config_error_code: Annotated[int, int16, versions("5+"), tag(0, "5+"), ignorable] = 0
    num_partitions: Annotated[int, int32, versions("5+"), ignorable] = -1
    replication_factor: Annotated[int, int16, versions("5+"), ignorable] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, versions("5+"), nullable("5+"), ignorable] = []


class CreateTopicsResponse(Message, api_key=19, kind="response", versions="2-7", flexible="5+"):
    """CreateTopicsResponse."""

    throttle_time_ms: Annotated[int, int32, versions("2+"), ignorable] = 0
    topics: Annotated[list[CreatableTopicResult], versions("0+")] = []
