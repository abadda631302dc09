"""Allocation of producer ids in blocks (KIP-730)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import AllocateProducerIds, Result
from pybroker.machine.machine import Outcome
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.producer_ids import ProducerIdsRecord

if TYPE_CHECKING:
    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.schema import Message

BLOCK_SIZE = 1000
"""Kafka's `ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`."""
_LAST = (1 << 63) - 1


def allocate_producer_ids(image: MetadataImage, event: AllocateProducerIds) -> Outcome[Message, range | Result]:
    """Allocate the next block for a registered broker; no id is ever allocated twice."""
    broker = image.cluster.brokers.get(event.broker_id)
    if broker is None or broker.epoch != event.broker_epoch:
        message = f"Broker {event.broker_id} is not registered with broker epoch {event.broker_epoch}."
        return Outcome((), Result(ErrorCode.STALE_BROKER_EPOCH, message))
    first = image.producer_ids.next_producer_id
    if first > _LAST - BLOCK_SIZE:
        message = f"Exhausted all producerIds as the next block's end producerId is larger than {_LAST}"
        return Outcome((), Result(ErrorCode.UNKNOWN_SERVER_ERROR, message))
    block = range(first, first + BLOCK_SIZE)
    record = ProducerIdsRecord(broker_id=event.broker_id, broker_epoch=event.broker_epoch, next_producer_id=block.stop)
    return Outcome((record,), block)
