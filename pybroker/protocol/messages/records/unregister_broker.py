"""The metadata record UnregisterBrokerRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, int32, int64, versions


class UnregisterBrokerRecord(Message, api_key=1, kind="metadata", versions="0", flexible="0+"):
    """UnregisterBrokerRecord."""

    broker_id: Annotated[int, int32, versions("0+")] = 0
    broker_epoch: Annotated[int, int64, versions("0+")] = 0
