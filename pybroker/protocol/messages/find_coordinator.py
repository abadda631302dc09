"""FindCoordinator (10): finds the coordinators of keys, from version 4 of several keys at once."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, ignorable, int8, int16, int32, nullable, string, versions

FIRST_VERSION_WITH_MANY_KEYS = 4
GROUP, TRANSACTION = 0, 1
"""Key types."""


class FindCoordinatorRequest(Message, api_key=10, kind="request", versions="0-6", flexible="3+"):
    """Requests the coordinators of groups, transactional ids or share partitions."""

    key: Annotated[str, string, versions("0-3"), about("The group or transactional id.")] = ""
    key_type: Annotated[int, int8, versions("1+"), about("0 group, 1 transaction, 2 share group partition.")] = 0
    coordinator_keys: Annotated[list[str], string, versions("4+"), about("The groups or transactional ids.")] = []


class Coordinator(Struct):
    """The coordinator of one key."""

    key: Annotated[str, string, versions("4+"), about("The group or transactional id.")] = ""
    node_id: Annotated[int, int32, versions("4+"), about("The broker's id.")] = 0
    host: Annotated[str, string, versions("4+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, int32, versions("4+"), about("Port to connect to.")] = 0
    error_code: Annotated[int, int16, versions("4+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("4+"), nullable("4+"), ignorable, about("What went wrong, for people.")
    ] = ""


class FindCoordinatorResponse(Message, api_key=10, kind="response", versions="0-6", flexible="3+"):
    """The coordinator of each key."""

    throttle_time_ms: Annotated[
        int, int32, versions("1+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0-3"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("1-3"), nullable("1-3"), ignorable, about("What went wrong, for people.")
    ] = ""
    node_id: Annotated[int, int32, versions("0-3"), about("The broker's id.")] = 0
    host: Annotated[str, string, versions("0-3"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, int32, versions("0-3"), about("Port to connect to.")] = 0
    coordinators: Annotated[list[Coordinator], versions("4+"), about("One result for each key.")] = []
