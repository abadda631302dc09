"""DeleteAcls (31): deletes the access control entries that filters match."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int8, int16, int32, nullable, string, versions


class DeleteAclsFilter(Struct):
    """A filter for the entries to delete."""

    resource_type_filter: Annotated[int, int8, versions("0+"), about("Kind of the resource; 1 for any.")] = 0
    resource_name_filter: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Name of the resource; null for any.")
    ] = ""
    pattern_type_filter: Annotated[
        int, int8, versions("1+"), about("3 literal, 4 prefixed, 1 any, 2 what the name matches.")
    ] = 3
    principal_filter: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Whom it is about; null for anybody.")
    ] = ""
    host_filter: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("From which host; null for any.")
    ] = ""
    operation: Annotated[int, int8, versions("0+"), about("What it is about; 1 for any.")] = 0
    permission_type: Annotated[int, int8, versions("0+"), about("2 forbids, 3 allows, 1 for both.")] = 0


class DeleteAclsRequest(Message, api_key=31, kind="request", versions="1-3", flexible="2+"):
    """Deletes the entries that filters match."""

    filters: Annotated[list[DeleteAclsFilter], versions("0+"), about("Each says which entries.")] = []


class DeleteAclsMatchingAcl(Struct):
    """A deleted entry."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
    resource_type: Annotated[int, int8, versions("0+"), about("Kind of the resource.")] = 0
    resource_name: Annotated[str, string, versions("0+"), about("Its name, or what its name begins with.")] = ""
    pattern_type: Annotated[int, int8, versions("1+"), about("3 for a literal name, 4 for a prefix.")] = 3
    principal: Annotated[str, string, versions("0+"), about("Whom it is about.")] = ""
    host: Annotated[str, string, versions("0+"), about("From which host, * for any.")] = ""
    operation: Annotated[int, int8, versions("0+"), about("What it is about.")] = 0
    permission_type: Annotated[int, int8, versions("0+"), about("2 forbids, 3 allows.")] = 0


class DeleteAclsFilterResult(Struct):
    """The result for one filter."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
    matching_acls: Annotated[list[DeleteAclsMatchingAcl], versions("0+"), about("The entries it matched.")] = []


class DeleteAclsResponse(Message, api_key=31, kind="response", versions="1-3", flexible="2+"):
    """The result for each filter, in the order of the request."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    filter_results: Annotated[list[DeleteAclsFilterResult], versions("0+"), about("One result for each filter.")] = []
