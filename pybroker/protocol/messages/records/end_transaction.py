"""The metadata record EndTransactionRecord (24)."""

from __future__ import annotations

from pybroker.protocol.schema import Message


class EndTransactionRecord(Message, api_key=24, kind="metadata", versions="0", flexible="0+"):
    """Commits a metadata transaction: the records since BeginTransactionRecord apply."""
