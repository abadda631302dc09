"""The metadata record BeginTransactionRecord (23)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, nullable, string, tag, versions


class BeginTransactionRecord(Message, api_key=23, kind="metadata", versions="0", flexible="0+"):
    """Begins a metadata transaction: the records that follow apply together, or not at all."""

    name: Annotated[
        str | None, string, versions("0+"), nullable("0+"), tag(0, "0+"), about("What the group of records is about.")
    ] = None
