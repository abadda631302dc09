"""The metadata record ClientQuotaRecord (14)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, boolean, float64, nullable, string, versions


class EntityData(Struct):
    """One component of a quota entity."""

    entity_type: Annotated[str, string, versions("0+"), about("`user`, `client-id` or `ip`.")] = ""
    entity_name: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Its name, null for the default.")
    ] = ""


class ClientQuotaRecord(Message, api_key=14, kind="metadata", versions="0", flexible="0+"):
    """A quota is set or removed (KIP-546)."""

    entity: Annotated[list[EntityData], versions("0+"), about("Whom it binds.")] = []
    key: Annotated[str, string, versions("0+"), about("What is limited.")] = ""
    value: Annotated[float, float64, versions("0+"), about("The limit.")] = 0.0
    remove: Annotated[bool, boolean, versions("0+"), about("Whether the limit is taken away.")] = False
