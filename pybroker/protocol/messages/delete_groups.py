"""DeleteGroups (42): deletes empty groups."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int16, int32, map_key, string, versions


class DeleteGroupsRequest(Message, api_key=42, kind="request", versions="0-2", flexible="2+"):
    """Deletes empty groups and their committed offsets."""

    groups_names: Annotated[list[str], string, versions("0+"), about("The groups to delete.")] = []


class DeletableGroupResult(Struct):
    """The result for one group."""

    group_id: Annotated[str, string, versions("0+"), map_key, about("The group.")] = ""
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class DeleteGroupsResponse(Message, api_key=42, kind="response", versions="0-2", flexible="2+"):
    """The result for each group."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    results: Annotated[list[DeletableGroupResult], versions("0+"), about("One result for each group.")] = []
