"""The metadata record RemoveAccessControlEntryRecord (19)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, about, uuid, versions


class RemoveAccessControlEntryRecord(Message, api_key=19, kind="metadata", versions="0", flexible="0+"):
    """An access control entry is removed."""

    id: Annotated[bytes, uuid, versions("0+"), about("The rule's id.")] = ZERO_UUID
