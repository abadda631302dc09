"""The metadata record AbortTransactionRecord (25)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, nullable, string, tag, versions


class AbortTransactionRecord(Message, api_key=25, kind="metadata", versions="0", flexible="0+"):
    """Aborts a metadata transaction: the records since BeginTransactionRecord are discarded."""

    reason: Annotated[
        str | None, string, versions("0+"), nullable("0+"), tag(0, "0+"), about("Why the group of records is void.")
    ] = None
