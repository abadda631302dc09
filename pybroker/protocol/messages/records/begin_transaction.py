"""The metadata record BeginTransactionRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, nullable, string, tag, versions


class BeginTransactionRecord(Message, api_key=23, kind="metadata", versions="0", flexible="0+"):
    """BeginTransactionRecord."""

    name: Annotated[str | None, string, versions("0+"), nullable("0+"), tag(0, "0+")] = None
