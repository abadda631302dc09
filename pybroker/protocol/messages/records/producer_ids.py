"""The metadata record ProducerIdsRecord (15)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int32, int64, versions


class ProducerIdsRecord(Message, api_key=15, kind="metadata", versions="0", flexible="0+"):
    """A block of producer ids is allocated to a broker."""

    broker_id: Annotated[int, int32, versions("0+"), about("Who asked for a block of producer ids.")] = 0
    broker_epoch: Annotated[int, int64, versions("0+"), about("Its registration.")] = -1
    next_producer_id: Annotated[int, int64, versions("0+"), about("The first id of the next block.")] = 0
