"""EndTxn: commits or aborts a transaction.

Key
    26

Versions
    0-5

Behaviour
    - The response is sent when the decision is committed to __transaction_state. Markers are written after that;
      meanwhile other requests for the transactional id return CONCURRENT_TRANSACTIONS.
    - INVALID_PRODUCER_ID_MAPPING for a transactional id that is unknown or has another producer id, PRODUCER_FENCED for
      another epoch, INVALID_TXN_STATE if no transaction is open, or it has ended the other way.
    - A retried request has the same result as the first one.
    - INVALID_REQUEST for an empty transactional id.

Version notes
    - Since version 5, every end bumps the epoch (KIP-890), which the response returns. An abort needs no open
      transaction.
    - PRODUCER_FENCED since version 2, INVALID_PRODUCER_EPOCH before.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.transaction.events import EndTransaction, ProducerIdentity
from pybroker.handlers.errors import ApiError, fencing
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply

_FIRST_VERSION_WITH_FENCED = 2
_FIRST_VERSION_WITH_EPOCH_BUMP = 5
_TRANSACTION_VERSION = 2
"""The level of transaction.version that a client of that request version uses."""


def _failed(_request: EndTxnRequest, version: int, error: WireError) -> EndTxnResponse:
    return EndTxnResponse(error_code=fencing(error.code, is_known=version >= _FIRST_VERSION_WITH_FENCED))


@handles(
    EndTxnRequest,
    requires=[of_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, select(EndTxnRequest.transactional_id))],
    failed=_failed,
)
def end_txn(request: EndTxnRequest, context: BrokerContext) -> Reply:
    """Pass the request to the coordinator of the transactional id."""
    if not request.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    event = EndTransaction(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        request.committed,
        _TRANSACTION_VERSION if context.version >= _FIRST_VERSION_WITH_EPOCH_BUMP else 0,
    )
    return context.services.transactions.submit_with_id(event).through(_respond)


def _respond(next_one: ProducerIdentity) -> EndTxnResponse:
    return EndTxnResponse(producer_id=next_one.producer_id, producer_epoch=next_one.producer_epoch)
