"""The control record ControlRecordTypeSchema."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, int16, versions


class ControlRecordTypeSchema(Message, kind="data", versions="0", flexible="none"):
    """ControlRecordTypeSchema."""

    type: Annotated[int, int16, versions("0+")] = 0
