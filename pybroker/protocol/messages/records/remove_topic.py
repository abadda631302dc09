"""The metadata record RemoveTopicRecord (9)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, about, uuid, versions


class RemoveTopicRecord(Message, api_key=9, kind="metadata", versions="0", flexible="0+"):
    """A topic is deleted, with all its partitions."""

    topic_id: Annotated[bytes, uuid, versions("0+"), about("The topic that goes, with all its partitions.")] = ZERO_UUID
