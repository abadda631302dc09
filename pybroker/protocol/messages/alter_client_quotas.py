"""AlterClientQuotas (49): sets and removes quotas of users, client ids and IP addresses."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, boolean, float64, int16, int32, nullable, string, versions


class EntityData(Struct):
    """One component of a quota entity."""

    entity_type: Annotated[str, string, versions("0+"), about("`user`, `client-id` or `ip`.")] = ""
    entity_name: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Its name, null for the default.")
    ] = ""


class OpData(Struct):
    """One quota to set or remove."""

    key: Annotated[str, string, versions("0+"), about("What is limited.")] = ""
    value: Annotated[float, float64, versions("0+"), about("The limit; ignored where it is taken away.")] = 0.0
    remove: Annotated[bool, boolean, versions("0+"), about("Whether the limit is taken away.")] = False


class EntryData(Struct):
    """The quota changes of one entity."""

    entity: Annotated[list[EntityData], versions("0+"), about("Whom they bind.")] = []
    ops: Annotated[list[OpData], versions("0+"), about("The changes.")] = []


class AlterClientQuotasRequest(Message, api_key=49, kind="request", versions="0-1", flexible="1+"):
    """Sets and removes quotas (KIP-546)."""

    entries: Annotated[list[EntryData], versions("0+"), about("The changes, by entity.")] = []
    validate_only: Annotated[bool, boolean, versions("0+"), about("Whether nothing is to change.")] = False


class AlteredEntity(Struct):
    """The result for one entity."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
    entity: Annotated[list[EntityData], versions("0+"), about("Whom they bind.")] = []


class AlterClientQuotasResponse(Message, api_key=49, kind="response", versions="0-1", flexible="1+"):
    """The result for each entity."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    entries: Annotated[list[AlteredEntity], versions("0+"), about("One for each entity.")] = []
