"""The messages of DescribeConfigs."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, boolean, ignorable, int8, int16, int32, nullable, string, versions


class DescribeConfigsResource(Struct):
    """DescribeConfigsResource."""

    resource_type: Annotated[int, int8, versions("0+")] = 0
    resource_name: Annotated[str, string, versions("0+")] = ""
    configuration_keys: Annotated[list[str] | None, string, versions("0+"), nullable("0+")] = []


class DescribeConfigsRequest(Message, api_key=32, kind="request", versions="1-4", flexible="4+"):
    """DescribeConfigsRequest."""

    resources: Annotated[list[DescribeConfigsResource], versions("0+")] = []
    include_synonyms: Annotated[bool, boolean, versions("1+")] = False
    include_documentation: Annotated[bool, boolean, versions("3+")] = False


class DescribeConfigsSynonym(Struct):
    """DescribeConfigsSynonym."""

    name: Annotated[str, string, versions("1+")] = ""
    value: Annotated[str | None, string, versions("1+"), nullable("0+")] = ""
    source: Annotated[int, int8, versions("1+")] = 0


class DescribeConfigsResourceResult(Struct):
    """DescribeConfigsResourceResult."""

    name: Annotated[str, string, versions("0+")] = ""
    value: Annotated[str | None, string, versions("0+"), nullable("0+")] = ""
    read_only: Annotated[bool, boolean, versions("0+")] = False
    config_source: Annotated[int, int8, versions("1+"), ignorable] = -1
    is_sensitive: Annotated[bool, boolean, versions("0+")] = False
    synonyms: Annotated[list[DescribeConfigsSynonym], versions("1+"), ignorable] = []
    config_type: Annotated[int, int8, versions("3+"), ignorable] = 0
    documentation: Annotated[str | None, string, versions("3+"), nullable("0+"), ignorable] = ""


class DescribeConfigsResult(Struct):
    """DescribeConfigsResult."""

    error_code: Annotated[int, int16, versions("0+")] = 0
    error_message: Annotated[str | None, string, versions("0+"), nullable("0+")] = ""
    resource_type: Annotated[int, int8, versions("0+")] = 0
    resource_name: Annotated[str, string, versions("0+")] = ""
    configs: Annotated[list[DescribeConfigsResourceResult], versions("0+")] = []


class DescribeConfigsResponse(Message, api_key=32, kind="response", versions="1-4", flexible="4+"):
    """DescribeConfigsResponse."""

    throttle_time_ms: Annotated[int, int32, versions("0+")] = 0
    results: Annotated[list[DescribeConfigsResult], versions("0+")] = []
