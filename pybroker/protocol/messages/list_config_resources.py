"""ListConfigResources (74): the resources with configuration; in version 0 only client metrics."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, ignorable, int8, int16, int32, string, versions


class ListConfigResourcesRequest(Message, api_key=74, kind="request", versions="0-1", flexible="0+"):
    """Requests the resources that have configuration (KIP-1142)."""

    resource_types: Annotated[list[int], int8, versions("1+"), about("Kinds to list; empty for all.")] = []


class ConfigResource(Struct):
    """A resource that has configuration."""

    resource_name: Annotated[
        str, string, versions("0+"), about("The resource's name: a topic, a broker id, a group.")
    ] = ""
    resource_type: Annotated[
        int,
        int8,
        versions("1+"),
        ignorable,
        about("Kind of resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."),
    ] = 16


class ListConfigResourcesResponse(Message, api_key=74, kind="response", versions="0-1", flexible="0+"):
    """The resources that have configuration."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    config_resources: Annotated[list[ConfigResource], versions("0+"), about("What was found.")] = []
