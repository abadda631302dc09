"""DescribeTransactions: where transactional ids and their transactions stand (KIP-664).

Key
    65

Versions
    0-0

Behaviour
    - Each transactional id is answered by itself: TRANSACTIONAL_ID_NOT_FOUND for one that nobody has, NOT_COORDINATOR,
      COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE; INVALID_REQUEST for an empty one.
    - Of a transaction that ends, the partitions that still need its marker are named, as in Kafka.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.coordinator.transaction.events import DescribeTransaction
from pybroker.handlers.errors import wire_error
from pybroker.handlers.judging import may
from pybroker.handlers.registry import handles
from pybroker.machine.runner import ClosedError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_answer, of_items

if TYPE_CHECKING:
    from pybroker.coordinator.transaction.metadata import TransactionMetadata
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(request: DescribeTransactionsRequest, _version: int, error: WireError) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id=one, error_code=error.code) for one in request.transactional_ids
        ]
    )


@handles(
    DescribeTransactionsRequest,
    requires=[
        of_items(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "transactional_ids"),
        of_answer(Operation.DESCRIBE, ResourceType.TOPIC),
    ],
    failed=_failed,
)
async def describe_transactions(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    """Describe transactional ids, in the order asked."""
    return DescribeTransactionsResponse(
        transaction_states=[await _describe(one, context) for one in request.transactional_ids]
    )


async def _describe(transactional_id: str, context: RequestContext) -> TransactionState:
    if not transactional_id:
        return TransactionState(error_code=ErrorCode.INVALID_REQUEST)
    try:
        event = DescribeTransaction(transactional_id)
        known: TransactionMetadata = await context.services.transactions.submit(transactional_id, event)
    except (CoordinatorError, ClosedError) as error:
        return TransactionState(transactional_id=transactional_id, error_code=wire_error(error).code)
    partitions = known.partitions
    if known.is_prepared and (left := context.services.transactions.without_marker(transactional_id)) is not None:
        partitions &= left
    topics: dict[str, TopicData] = {}
    for name, index in sorted(partitions):
        if name not in topics:
            if not may(context, Operation.DESCRIBE, ResourceType.TOPIC, name, is_asked=False):
                continue
            topics[name] = TopicData(topic=name, partitions=[])
        topics[name].partitions.append(index)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=known.state.value,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=list(topics.values()),
    )
