"""InitProducerId: assigns a producer id and epoch to an idempotent or transactional producer.

Key
    22

Versions
    0-5

Behaviour
    - Without a transactional id: a new producer id with epoch 0. The controller allocates blocks of ids to brokers, so
      ids are unique across brokers and restarts.
    - With a transactional id: its producer id with the next epoch, which fences the previous producer; a new id after
      the last epoch. INVALID_REQUEST for an empty transactional id.
    - An open transaction is aborted first. CONCURRENT_TRANSACTIONS until its markers, or those of an ended one, are
      written: the client retries.
    - INVALID_TRANSACTION_TIMEOUT for a timeout outside 1 ms to transaction.max.timeout.ms.
    - PRODUCER_FENCED for another producer id, or an epoch that is not one of the last two (KIP-360).
    - NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
    - INVALID_REQUEST for only one of producer id and epoch (the other is -1).

Version notes
    - Version 3 and later may have the producer's current id and epoch. Without a transactional id they are ignored, as
      in Kafka.
    - PRODUCER_FENCED since version 4, INVALID_PRODUCER_EPOCH before.
    - Version 6 (two-phase commit, KIP-939) is unstable in Kafka, and not served there either.

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
    """Return a new producer id, or that of the transactional id."""
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        had = ProducerIdentity(request.producer_id, request.producer_epoch)
        expected = None if request.producer_id == -1 else had
        event = InitProducerId(request.transactional_id, request.transaction_timeout_ms, expected)
        return context.services.transactions.submit_with_id(event).through(_respond)
    is_writer = allowed_on_any(context, Operation.WRITE, ResourceType.TOPIC)
    if not is_writer and not allowed_on_cluster(context, Operation.IDEMPOTENT_WRITE):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    producer_id = context.services.producer_ids.take()
    if producer_id is not None:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    return _after_new_block(context)


def _respond(given: ProducerIdentity | None) -> InitProducerIdResponse:
    if given is None:
        return InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=given.producer_id, producer_epoch=given.producer_epoch)


async def _after_new_block(context: BrokerContext) -> InitProducerIdResponse:
    producer_id = await context.services.producer_ids.take_after_refill()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
