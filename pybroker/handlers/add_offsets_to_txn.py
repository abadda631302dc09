"""AddOffsetsToTxn: adds a group's offsets to a transaction.

Key
    25

Versions
    0-4

Behaviour
    - The group's partition of __consumer_offsets is added to the transaction. Begins a transaction if none is open.
    - INVALID_PRODUCER_ID_MAPPING for a transactional id that is unknown or has another producer id, PRODUCER_FENCED for
      another epoch, CONCURRENT_TRANSACTIONS until the markers of the previous transaction are written.
    - INVALID_REQUEST for an empty transactional id.

Version notes
    - PRODUCER_FENCED since version 2, INVALID_PRODUCER_EPOCH before.
    - Clients of transaction.version 2 do not send it: TxnOffsetCommit adds the partition.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.coordinator.transaction.events import AddPartitions, ProducerIdentity
from pybroker.handlers.errors import ApiError, fencing
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply

_FIRST_VERSION_WITH_FENCED = 2


def _failed(_request: AddOffsetsToTxnRequest, version: int, error: WireError) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=fencing(error.code, is_known=version >= _FIRST_VERSION_WITH_FENCED))


@handles(
    AddOffsetsToTxnRequest,
    requires=[
        of_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, select(AddOffsetsToTxnRequest.transactional_id)),
        of_request(Operation.READ, ResourceType.GROUP, select(AddOffsetsToTxnRequest.group_id)),
    ],
    failed=_failed,
)
def add_offsets_to_txn(request: AddOffsetsToTxnRequest, context: BrokerContext) -> Reply:
    """Add the group's partition to the transaction."""
    if not request.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    partition = OFFSETS_TOPIC, context.services.groups.partition_for(request.group_id)
    identity = ProducerIdentity(request.producer_id, request.producer_epoch)
    event = AddPartitions(request.transactional_id, identity, frozenset((partition,)), client_version=0)
    return context.services.transactions.submit(request.transactional_id, event).through(_respond)


def _respond(_added: None) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse()
