"""The metadata record ConfigRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, int8, nullable, string, versions


class ConfigRecord(Message, api_key=4, kind="metadata", versions="0", flexible="0+"):
    """ConfigRecord."""

    resource_type: Annotated[int, int8, versions("0+")] = 0
    resource_name: Annotated[str, string, versions("0+")] = ""
    name: Annotated[str, string, versions("0+")] = ""
    value: Annotated[str | None, string, versions("0+"), nullable("0+")] = ""
