"""The messages of DescribeCluster."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, boolean, int8, int16, int32, map_key, nullable, string, versions


class DescribeClusterRequest(Message, api_key=60, kind="request", versions="0-2", flexible="0+"):
    """DescribeClusterRequest."""

    include_cluster_authorized_operations: Annotated[bool, boolean, versions("0+")] = False
    endpoint_type: Annotated[int, int8, versions("1+")] = 1
    include_fenced_brokers: Annotated[bool, boolean, versions("2+")] = False


class DescribeClusterBroker(Struct):
    """DescribeClusterBroker."""

    broker_id: Annotated[int, int32, versions("0+"), map_key] = 0
    host: Annotated[str, string, versions("0+")] = ""
    port: Annotated[int, int32, versions("0+")] = 0
    rack: Annotated[str | None, string, versions("0+"), nullable("0+")] = None
    is_fenced: Annotated[bool, boolean, versions("2+")] = False


class DescribeClusterResponse(Message, api_key=60, kind="response", versions="0-2", flexible="0+"):
    """DescribeClusterResponse."""

    throttle_time_ms: Annotated[int, int32, versions("0+")] = 0
    error_code: Annotated[int, int16, versions("0+")] = 0
    error_message: Annotated[str | None, string, versions("0+"), nullable("0+")] = None
    endpoint_type: Annotated[int, int8, versions("1+")] = 1
    cluster_id: Annotated[str, string, versions("0+")] = ""
    controller_id: Annotated[int, int32, versions("0+")] = -1
    brokers: Annotated[list[DescribeClusterBroker], versions("0+")] = []
    cluster_authorized_operations: Annotated[int, int32, versions("0+")] = -2147483648
