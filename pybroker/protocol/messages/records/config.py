"""The metadata record ConfigRecord (4)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int8, nullable, string, versions


class ConfigRecord(Message, api_key=4, kind="metadata", versions="0", flexible="0+"):
    """A configuration key has a new value."""

    resource_type: Annotated[
        int, int8, versions("0+"), about("Kind of resource: 2 topic, 4 broker, 16 client metrics, 32 group.")
    ] = 0
    resource_name: Annotated[
        str, string, versions("0+"), about("The resource's name: a topic, a broker id, a group.")
    ] = ""
    name: Annotated[str, string, versions("0+"), about("Configuration key.")] = ""
    value: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Its value; null takes it back to the default.")
    ] = ""
