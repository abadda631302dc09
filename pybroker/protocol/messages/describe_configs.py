"""DescribeConfigs (32): configuration keys, their values and the sources of the values."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    boolean,
    ignorable,
    int8,
    int16,
    int32,
    nullable,
    string,
    versions,
)


class DescribeConfigsResource(Struct):
    """A requested resource."""

    resource_type: Annotated[
        int,
        int8,
        versions("0+"),
        about("Kind of resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."),
    ] = 0
    resource_name: Annotated[
        str, string, versions("0+"), about("The resource's name: a topic, a broker id, a group.")
    ] = ""
    configuration_keys: Annotated[
        list[str] | None, string, versions("0+"), nullable("0+"), about("The keys wanted; null for all.")
    ] = []


class DescribeConfigsRequest(Message, api_key=32, kind="request", versions="1-4", flexible="4+"):
    """Requests the configuration of resources."""

    resources: Annotated[list[DescribeConfigsResource], versions("0+"), about("The resources asked about.")] = []
    include_synonyms: Annotated[
        bool, boolean, versions("1+"), about("Whether to list the values that would take effect in turn.")
    ] = False
    include_documentation: Annotated[bool, boolean, versions("3+"), about("Whether to say what each key means.")] = (
        False
    )


class DescribeConfigsSynonym(Struct):
    """A value of the key from one configuration source."""

    name: Annotated[str, string, versions("1+"), about("The key that gives the value.")] = ""
    value: Annotated[str | None, string, versions("1+"), nullable("0+"), about("Its value; null where sensitive.")] = ""
    source: Annotated[int, int8, versions("1+"), about("Where it is set.")] = 0


class DescribeConfigsResourceResult(Struct):
    """A key and its value."""

    name: Annotated[str, string, versions("0+"), about("Configuration key.")] = ""
    value: Annotated[str | None, string, versions("0+"), nullable("0+"), about("Its value; null where sensitive.")] = ""
    read_only: Annotated[bool, boolean, versions("0+"), about("Whether it cannot be changed at run time.")] = False
    config_source: Annotated[
        int, int8, versions("1+"), ignorable, about("Where the value comes from (KIP-226's numbers).")
    ] = -1
    is_sensitive: Annotated[bool, boolean, versions("0+"), about("Whether the value is kept back.")] = False
    synonyms: Annotated[
        list[DescribeConfigsSynonym],
        versions("1+"),
        ignorable,
        about("All places that set it, the effective one first."),
    ] = []
    config_type: Annotated[
        int,
        int8,
        versions("3+"),
        ignorable,
        about("1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password."),
    ] = 0
    documentation: Annotated[
        str | None, string, versions("3+"), nullable("0+"), ignorable, about("What the key means.")
    ] = ""


class DescribeConfigsResult(Struct):
    """The configuration of one resource."""

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
    configs: Annotated[list[DescribeConfigsResourceResult], versions("0+"), about("The keys asked for.")] = []


class DescribeConfigsResponse(Message, api_key=32, kind="response", versions="1-4", flexible="4+"):
    """The configuration of each resource."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    results: Annotated[list[DescribeConfigsResult], versions("0+"), about("One result for each resource.")] = []
