"""The metadata record TopicRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, string, uuid, versions


class TopicRecord(Message, api_key=2, kind="metadata", versions="0", flexible="0+"):
    """TopicRecord."""

    name: Annotated[str, string, versions("0+")] = ""
    topic_id: Annotated[bytes, uuid, versions("0+")] = ZERO_UUID
