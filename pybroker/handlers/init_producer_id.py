"""InitProducerId: an identity for a producer whose records are to be written once.

Key
    22

Versions
    0-5

Behaviour
    - Without a transactional id: a fresh producer id with epoch 0. Ids come in blocks from the controller, so no two
      brokers and no two lives of a broker give the same.
    - With a transactional id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which ends a producer at once
      (docs/adr/0022-transactional-ids-are-refused-for-good.md); an empty one is INVALID_REQUEST.
    - Half of a producer id and epoch (one of them -1) is INVALID_REQUEST.

Version notes
    - Version 3 and later may name the id and epoch that the producer had; without a transactional id they are ignored,
      as in Kafka.
    - Version 6 (two-phase commit, KIP-939) is marked unstable in Kafka and is not served there either.

Not done
    - Transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import NO_TRANSACTIONS, ApiError
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from pybroker.security.authorizer import allowed_on_any, allowed_on_cluster
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(_request: InitProducerIdRequest, _version: int, error: WireError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)


@handles(
    InitProducerIdRequest,
    requires=[
        of_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id"),
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
    request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    """Give out the next id, at once unless a new block must come from the controller first."""
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_TRANSACTIONS)
    is_writer = allowed_on_any(context, Operation.WRITE, ResourceType.TOPIC)
    if not is_writer and not allowed_on_cluster(context, Operation.IDEMPOTENT_WRITE):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    producer_id = context.services.producer_ids.take()
    if producer_id is not None:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    return _after_new_block(context)


async def _after_new_block(context: RequestContext) -> InitProducerIdResponse:
    producer_id = await context.services.producer_ids.take_after_refill()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
