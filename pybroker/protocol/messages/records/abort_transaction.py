"""The metadata record AbortTransactionRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, nullable, string, tag, versions


class AbortTransactionRecord(Message, api_key=25, kind="metadata", versions="0", flexible="0+"):
    """AbortTransactionRecord."""

    reason: Annotated[str | None, string, versions("0+"), nullable("0+"), tag(0, "0+")] = None
