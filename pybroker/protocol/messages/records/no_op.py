"""The metadata record NoOpRecord (20)."""

from __future__ import annotations

from pybroker.protocol.schema import Message


class NoOpRecord(Message, api_key=20, kind="metadata", versions="0", flexible="0+"):
    """Changes nothing. Its append advances the end of the log, which shows that the active controller is alive."""
