"""InitProducerId: an identity for a producer whose records are to be written once.

Key
    22

Versions
    0-5

Behaviour
    - Without a transactional id: a fresh producer id with epoch 0. Ids come in blocks from the controller, so no two
      brokers and no two lives of a broker give the same.
    - With a transactional id: its producer id with the next epoch, by which the producer that had it before is fenced;
      a new id once the epochs are used up. An empty one is INVALID_REQUEST.
    - An open transaction is aborted first, and the answer is CONCURRENT_TRANSACTIONS, as it is until the markers of an
      ended one are written: the client asks again.
    - INVALID_TRANSACTION_TIMEOUT for a timeout that is not 1 ms to transaction.max.timeout.ms.
    - A producer id that is not the transactional id's, or an epoch that is not the last two: PRODUCER_FENCED (KIP-360).
    - NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
    - Half of a producer id and epoch (one of them -1) is INVALID_REQUEST.

Version notes
    - Version 3 and later may name the id and epoch that the producer had; without a transactional id they are ignored,
      as in Kafka.
    - PRODUCER_FENCED from version 4 on, INVALID_PRODUCER_EPOCH before.
    - Version 6 (two-phase commit, KIP-939) is marked unstable in Kafka and is not served there either.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.transaction.events import InitProducerId, ProducerIdentity
from pybroker.handlers.errors import ApiError, fencing
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from pybroker.security.authorizer import allowed_on_any, allowed_on_cluster
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply


_FIRST_VERSION_WITH_FENCED = 4


def _failed(_request: InitProducerIdRequest, version: int, error: WireError) -> InitProducerIdResponse:
    code = fencing(error.code, is_known=version >= _FIRST_VERSION_WITH_FENCED)
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


@handles(
    InitProducerIdRequest,
    requires=[
        of_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, select(InitProducerIdRequest.transactional_id)),
        of_request(
            Operation.IDEMPOTENT_WRITE,
            ResourceType.CLUSTER,
            when="the producer has no transactional id and may write to no topic",
        ),
    ],
    failed=_failed,
    max_version=5,
)
def init_producer_id(
    request: InitProducerIdRequest, context: BrokerContext
) -> InitProducerIdResponse | Reply | Awaitable[InitProducerIdResponse]:
    """Give out an id: the next one, or that of the transactional id."""
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        had = ProducerIdentity(request.producer_id, request.producer_epoch)
        expected = None if request.producer_id == -1 else had
        event = InitProducerId(request.transactional_id, request.transaction_timeout_ms, expected)
        return context.services.transactions.submit_with_id(event).through(_answer)
    is_writer = allowed_on_any(context, Operation.WRITE, ResourceType.TOPIC)
    if not is_writer and not allowed_on_cluster(context, Operation.IDEMPOTENT_WRITE):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    producer_id = context.services.producer_ids.take()
    if producer_id is not None:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    return _after_new_block(context)


def _answer(given: ProducerIdentity | None) -> InitProducerIdResponse:
    if given is None:
        return InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=given.producer_id, producer_epoch=given.producer_epoch)


async def _after_new_block(context: BrokerContext) -> InitProducerIdResponse:
    producer_id = await context.services.producer_ids.take_after_refill()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
