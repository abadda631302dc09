"""CreateTopics (19): creates topics."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
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
    """A partition and its replicas."""

    partition_index: Annotated[int, int32, versions("0+"), map_key, about("Number of the partition.")] = 0
    broker_ids: Annotated[list[int], int32, versions("0+"), about("Its replicas, the preferred leader first.")] = []


class CreatableTopicConfig(Struct):
    """One key of the topic's configuration."""

    name: Annotated[str, string, versions("0+"), map_key, about("Configuration key.")] = ""
    value: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Configuration value; null for the default.")
    ] = ""


class CreatableTopic(Struct):
    """A topic to create."""

    name: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    num_partitions: Annotated[
        int, int32, versions("0+"), about("How many partitions; -1 for the default or with assignments.")
    ] = 0
    replication_factor: Annotated[
        int, int16, versions("0+"), about("How many replicas each; -1 for the default or with assignments.")
    ] = 0
    assignments: Annotated[
        list[CreatableReplicaAssignment],
        versions("0+"),
        about("Where the replicas go; empty to let the controller place them."),
    ] = []
    configs: Annotated[
        list[CreatableTopicConfig], versions("0+"), about("Configuration that differs from the default.")
    ] = []


class CreateTopicsRequest(Message, api_key=19, kind="request", versions="2-7", flexible="5+"):
    """Requests the controller to create topics."""

    topics: Annotated[list[CreatableTopic], versions("0+"), about("The topics to create.")] = []
    timeout_ms: Annotated[int, int32, versions("0+"), about("How long the broker may take, in milliseconds.")] = 60000
    validate_only: Annotated[bool, boolean, versions("1+"), about("Whether to check without creating.")] = False


class CreatableTopicConfigs(Struct):
    """One key of the created topic's configuration."""

    name: Annotated[str, string, versions("5+"), about("Configuration key.")] = ""
    value: Annotated[
        str | None, string, versions("5+"), nullable("5+"), about("Configuration value; null where sensitive.")
    ] = ""
    read_only: Annotated[bool, boolean, versions("5+"), about("Whether it cannot be changed at run time.")] = False
    config_source: Annotated[
        int, int8, versions("5+"), ignorable, about("Where the value comes from (KIP-226's numbers).")
    ] = -1
    is_sensitive: Annotated[bool, boolean, versions("5+"), about("Whether the value is kept back.")] = False


class CreatableTopicResult(Struct):
    """The result for one topic."""

    name: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("7+"), ignorable, about("The topic's id.")] = ZERO_UUID
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("1+"), nullable("0+"), ignorable, about("What went wrong, for people.")
    ] = ""
    topic_config_error_code: Annotated[
        int, int16, versions("5+"), tag(0, "5+"), ignorable, about("Why `configs` is left out, where it is.")
    ] = 0
    num_partitions: Annotated[int, int32, versions("5+"), ignorable, about("How many partitions it has.")] = -1
    replication_factor: Annotated[int, int16, versions("5+"), ignorable, about("How many replicas each has.")] = -1
    configs: Annotated[
        list[CreatableTopicConfigs] | None,
        versions("5+"),
        nullable("5+"),
        ignorable,
        about("Its whole configuration; null where the client may not see it."),
    ] = []


class CreateTopicsResponse(Message, api_key=19, kind="response", versions="2-7", flexible="5+"):
    """The result for each topic."""

    throttle_time_ms: Annotated[
        int, int32, versions("2+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    topics: Annotated[list[CreatableTopicResult], versions("0+"), about("One result for each topic asked for.")] = []
