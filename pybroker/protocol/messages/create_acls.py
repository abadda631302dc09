"""CreateAcls (30): creates access control entries."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int8, int16, int32, nullable, string, versions


class AclCreation(Struct):
    """An access control entry to create."""

    resource_type: Annotated[int, int8, versions("0+"), about("Kind of the resource.")] = 0
    resource_name: Annotated[str, string, versions("0+"), about("Its name, or what its name begins with.")] = ""
    resource_pattern_type: Annotated[int, int8, versions("1+"), about("3 for a literal name, 4 for a prefix.")] = 3
    principal: Annotated[str, string, versions("0+"), about("Whom it is about.")] = ""
    host: Annotated[str, string, versions("0+"), about("From which host, * for any.")] = ""
    operation: Annotated[int, int8, versions("0+"), about("What it is about.")] = 0
    permission_type: Annotated[int, int8, versions("0+"), about("2 forbids, 3 allows.")] = 0


class CreateAclsRequest(Message, api_key=30, kind="request", versions="1-3", flexible="2+"):
    """Creates access control entries."""

    creations: Annotated[list[AclCreation], versions("0+"), about("The entries.")] = []


class AclCreationResult(Struct):
    """The result for one entry."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""


class CreateAclsResponse(Message, api_key=30, kind="response", versions="1-3", flexible="2+"):
    """The result for each entry, in the order of the request."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    results: Annotated[list[AclCreationResult], versions("0+"), about("One result for each entry.")] = []
