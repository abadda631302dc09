"""The metadata record TopicRecord (2)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, about, string, uuid, versions


class TopicRecord(Message, api_key=2, kind="metadata", versions="0", flexible="0+"):
    """A topic exists."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("0+"), about("The topic's id.")] = ZERO_UUID
