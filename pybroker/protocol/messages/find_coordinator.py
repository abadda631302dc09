"""The messages of FindCoordinator."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, ignorable, int8, int16, int32, nullable, string, versions


class FindCoordinatorRequest(Message, api_key=10, kind="request", versions="0-6", flexible="3+"):
    """FindCoordinatorRequest."""

    key: Annotated[str, string, versions("0-3")] = ""
    key_type: Annotated[int, int8, versions("1+")] = 0
    coordinator_keys: Annotated[list[str], string, versions("4+")] = []


class Coordinator(Struct):
    """Coordinator."""

    key: Annotated[str, string, versions("4+")] = ""
    node_id: Annotated[int, int32, versions("4+")] = 0
    host: Annotated[str, string, versions("4+")] = ""
    port: Annotated[int, int32, versions("4+")] = 0
    error_code: Annotated[int, int16, versions("4+")] = 0
    error_message: Annotated[str | None, string, versions("4+"), nullable("4+"), ignorable] = ""


class FindCoordinatorResponse(Message, api_key=10, kind="response", versions="0-6", flexible="3+"):
    """FindCoordinatorResponse."""

    throttle_time_ms: Annotated[int, int32, versions("1+"), ignorable] = 0
    error_code: Annotated[int, int16, versions("0-3")] = 0
    error_message: Annotated[str | None, string, versions("1-3"), nullable("1-3"), ignorable] = ""
    node_id: Annotated[int, int32, versions("0-3")] = 0
    host: Annotated[str, string, versions("0-3")] = ""
    port: Annotated[int, int32, versions("0-3")] = 0
    coordinators: Annotated[list[Coordinator], versions("4+")] = []
