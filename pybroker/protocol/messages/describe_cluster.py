"""DescribeCluster (60): the brokers or controllers of the cluster."""

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

BROKERS, CONTROLLERS = 1, 2
"""Endpoint types."""


class DescribeClusterRequest(Message, api_key=60, kind="request", versions="0-2", flexible="0+"):
    """Requests the brokers or the controllers."""

    include_cluster_authorized_operations: Annotated[
        bool, boolean, versions("0+"), about("Whether to say what the client may do to the cluster.")
    ] = False
    endpoint_type: Annotated[int, int8, versions("1+"), about("1 brokers, 2 controllers.")] = 1
    include_fenced_brokers: Annotated[bool, boolean, versions("2+"), about("Whether to list fenced brokers too.")] = (
        False
    )


class DescribeClusterBroker(Struct):
    """A broker and its address."""

    broker_id: Annotated[int, int32, versions("0+"), map_key, about("The broker's id.")] = 0
    host: Annotated[str, string, versions("0+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, int32, versions("0+"), about("Port to connect to.")] = 0
    rack: Annotated[str | None, string, versions("0+"), nullable("0+"), about("The broker's rack.")] = None
    is_fenced: Annotated[bool, boolean, versions("2+"), about("Whether the broker is fenced.")] = False


class DescribeClusterResponse(Message, api_key=60, kind="response", versions="0-2", flexible="0+"):
    """The brokers or the controllers."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = None
    endpoint_type: Annotated[int, int8, versions("1+"), about("1 brokers, 2 controllers.")] = 1
    cluster_id: Annotated[str, string, versions("0+"), about("The cluster's id.")] = ""
    controller_id: Annotated[
        int, int32, versions("0+"), about("The leading controller; from a broker, any live broker.")
    ] = -1
    brokers: Annotated[list[DescribeClusterBroker], versions("0+"), about("The brokers to connect to.")] = []
    cluster_authorized_operations: Annotated[
        int, int32, versions("0+"), about("A bit for each operation allowed; the lowest number where not asked.")
    ] = -2147483648
