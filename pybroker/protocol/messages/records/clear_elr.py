"""The metadata record ClearElrRecord (28)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, string, versions


class ClearElrRecord(Message, api_key=28, kind="metadata", versions="0", flexible="0+"):
    """Clears the eligible leader replicas of one topic or of all topics (KIP-966)."""

    topic_name: Annotated[str, string, versions("0+"), about("Of which topic; empty for all.")] = ""
