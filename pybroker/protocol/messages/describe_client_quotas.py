"""DescribeClientQuotas (48): the quotas of users, client ids and IP addresses."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    boolean,
    float64,
    int8,
    int16,
    int32,
    nullable,
    string,
    versions,
)


class ComponentData(Struct):
    """A filter on one component of the quota entity."""

    entity_type: Annotated[str, string, versions("0+"), about("`user`, `client-id` or `ip`.")] = ""
    match_type: Annotated[
        int, int8, versions("0+"), about("0 for the name `match`, 1 for the default, 2 for whatever name.")
    ] = 0
    match: Annotated[str | None, string, versions("0+"), nullable("0+"), about("The name; null but for 0.")] = ""


class DescribeClientQuotasRequest(Message, api_key=48, kind="request", versions="0-1", flexible="1+"):
    """Requests the quotas that a filter matches (KIP-546)."""

    components: Annotated[list[ComponentData], versions("0+"), about("What an entity has to have.")] = []
    strict: Annotated[bool, boolean, versions("0+"), about("Whether it may have nothing else.")] = False


class EntityData(Struct):
    """One component of a quota entity."""

    entity_type: Annotated[str, string, versions("0+"), about("`user`, `client-id` or `ip`.")] = ""
    entity_name: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Its name, null for the default.")
    ] = ""


class ValueData(Struct):
    """One quota."""

    key: Annotated[str, string, versions("0+"), about("What is limited.")] = ""
    value: Annotated[float, float64, versions("0+"), about("The limit.")] = 0.0


class EntryData(Struct):
    """The quotas of one entity."""

    entity: Annotated[list[EntityData], versions("0+"), about("Whom they bind.")] = []
    values: Annotated[list[ValueData], versions("0+"), about("The limits.")] = []


class DescribeClientQuotasResponse(Message, api_key=48, kind="response", versions="0-1", flexible="1+"):
    """The quotas, by entity."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
    entries: Annotated[
        list[EntryData] | None, versions("0+"), nullable("0+"), about("The entities that match; null with an error.")
    ] = []
