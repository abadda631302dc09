"""IncrementalAlterConfigs (44): changes single configuration keys."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    boolean,
    int8,
    int16,
    int32,
    map_key,
    nullable,
    string,
    versions,
)


class AlterableConfig(Struct):
    """A configuration key to change."""

    name: Annotated[str, string, versions("0+"), map_key, about("Configuration key.")] = ""
    config_operation: Annotated[
        int, int8, versions("0+"), map_key, about("0 set, 1 delete, 2 append to the list, 3 subtract from it.")
    ] = 0
    value: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Its new value; null takes it away.")
    ] = ""


class AlterConfigsResource(Struct):
    """A resource to change."""

    resource_type: Annotated[
        int,
        int8,
        versions("0+"),
        map_key,
        about("Kind of resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."),
    ] = 0
    resource_name: Annotated[
        str, string, versions("0+"), map_key, about("The resource's name: a topic, a broker id, a group.")
    ] = ""
    configs: Annotated[list[AlterableConfig], versions("0+"), about("The keys to change.")] = []


class IncrementalAlterConfigsRequest(Message, api_key=44, kind="request", versions="0-1", flexible="1+"):
    """Changes single configuration keys of resources (KIP-339)."""

    resources: Annotated[list[AlterConfigsResource], versions("0+"), about("The resources to change.")] = []
    validate_only: Annotated[bool, boolean, versions("0+"), about("Whether to check without creating.")] = False


class AlterConfigsResourceResponse(Struct):
    """The result for one resource."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
    resource_type: Annotated[
        int,
        int8,
        versions("0+"),
        about("Kind of resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."),
    ] = 0
    resource_name: Annotated[
        str, string, versions("0+"), about("The resource's name: a topic, a broker id, a group.")
    ] = ""


class IncrementalAlterConfigsResponse(Message, api_key=44, kind="response", versions="0-1", flexible="1+"):
    """The result for each resource."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    responses: Annotated[
        list[AlterConfigsResourceResponse], versions("0+"), about("One result for each resource.")
    ] = []
