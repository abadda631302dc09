"""The metadata record RemoveTopicRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, uuid, versions


class RemoveTopicRecord(Message, api_key=9, kind="metadata", versions="0", flexible="0+"):
    """RemoveTopicRecord."""

    topic_id: Annotated[bytes, uuid, versions("0+")] = ZERO_UUID
