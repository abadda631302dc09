"""The metadata record NoOpRecord (20)."""

from __future__ import annotations

from pybroker.protocol.schema import Message


class NoOpRecord(Message, api_key=20, kind="metadata", versions="0", flexible="0+"):
    """Nothing: it moves the log's end, to show that the controller lives."""
