"""The metadata record UnregisterBrokerRecord (1)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int32, int64, versions


class UnregisterBrokerRecord(Message, api_key=1, kind="metadata", versions="0", flexible="0+"):
    """The registration of a broker is removed."""

    broker_id: Annotated[int, int32, versions("0+"), about("The broker's id.")] = 0
    broker_epoch: Annotated[int, int64, versions("0+"), about("The controller's number for this registration.")] = 0
