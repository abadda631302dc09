"""DescribeTransactions: returns the state of transactional ids and their transactions (KIP-664).

Key
    65

Versions
    0-0

Behaviour
    - Each transactional id succeeds or fails independently: TRANSACTIONAL_ID_NOT_FOUND for an unknown one,
      NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE; INVALID_REQUEST for an empty one.
    - A transactional id that occurs more than once is described once.
    - A transaction that is ending has only the partitions that still need its marker, as in Kafka.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.coordinator.transaction.events import DescribeTransaction
from pybroker.handlers.authorizing import may
from pybroker.handlers.errors import wire_error
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
from pybroker.security.requirements import of_items, of_response
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Set

    from pybroker.coordinator.transaction.metadata import TransactionMetadata
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.slices import Sliced

_AT_ONCE = 100
"""Transactional ids that are processed before the loop continues with other work: some milliseconds."""


def _failed(request: DescribeTransactionsRequest, _version: int, error: WireError) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id=one, error_code=error.code)
            for one in dict.fromkeys(request.transactional_ids)
        ]
    )


@handles(
    DescribeTransactionsRequest,
    requires=[
        of_items(
            Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, select(DescribeTransactionsRequest.transactional_ids)
        ),
        of_response(Operation.DESCRIBE, ResourceType.TOPIC),
    ],
    failed=_failed,
)
async def describe_transactions(
    request: DescribeTransactionsRequest, context: BrokerContext
) -> DescribeTransactionsResponse:
    """Describe transactional ids, in the order of the request, each once."""
    described = []
    for number, one in enumerate(dict.fromkeys(request.transactional_ids), 1):
        described.append(await _describe(one, context))
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return DescribeTransactionsResponse(transaction_states=described)


async def _describe(transactional_id: str, context: BrokerContext) -> TransactionState:
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
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=known.state.value,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=await context.services.slices.run(_topics(partitions, context)),
    )


def _topics(partitions: Set[tuple[str, int]], context: BrokerContext) -> Sliced[list[TopicData]]:
    """Return partitions by topic, of the topics that the client may describe."""
    topics: dict[str, TopicData | None] = {}
    for name, index in sorted(partitions):
        if name not in topics:
            is_known = may(context, Operation.DESCRIBE, ResourceType.TOPIC, name, is_requested=False)
            topics[name] = TopicData(topic=name, partitions=[]) if is_known else None
        topic = topics[name]
        if topic is not None:
            topic.partitions.append(index)
        yield
    return [topic for topic in topics.values() if topic is not None]
