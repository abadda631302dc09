"""The control record EndTxnMarker."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, int32, versions


class EndTxnMarker(Message, kind="data", versions="0", flexible="none"):
    """EndTxnMarker."""

    coordinator_epoch: Annotated[int, int32, versions("0+")] = 0
