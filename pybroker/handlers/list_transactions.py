"""ListTransactions: lists the transactional ids that this broker coordinates (KIP-664).

Key
    66

Versions
    0-2

Behaviour
    - Every transactional id of the partitions of __transaction_state that this broker leads. A client queries all
      brokers. Ids that the client may not describe are omitted.
    - Filters by producer id and by state. Unknown states are returned, and match no transaction.
    - COORDINATOR_LOAD_IN_PROGRESS while one of the partitions is loading.

Version notes
    - Since version 1, a filter by the duration of the transaction (KIP-994). Ids without a transaction match.
    - Since version 2, a pattern in RE2's syntax (KIP-1152), which matches whole transactional ids.
      INVALID_REGULAR_EXPRESSION for an invalid or too large pattern.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.runtime.patterns import InvalidPatternError, matcher
from pybroker.coordinator.transaction.admin import TransactionFilter
from pybroker.coordinator.transaction.events import ListTransactions
from pybroker.coordinator.transaction.states import TransactionState as State
from pybroker.handlers.authorizing import may
from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pybroker.coordinator.transaction.admin import Listed
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.slices import Sliced

_NAMES = frozenset(state.value for state in State)


def _failed(_request: ListTransactionsRequest, _version: int, error: WireError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)


@handles(
    ListTransactionsRequest,
    requires=[of_response(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)],
    failed=_failed,
)
async def list_transactions(request: ListTransactionsRequest, context: BrokerContext) -> ListTransactionsResponse:
    """List the transactional ids of all coordinator partitions of this broker."""
    states = frozenset(request.state_filters)
    requested = TransactionFilter(
        frozenset(request.producer_id_filters),
        states & _NAMES if states else None,
        request.duration_filter,
        _matches(request.transactional_id_pattern),
    )
    transactions = context.services.transactions
    async with transactions.listing:
        listed = await transactions.submit_all(ListTransactions())
        named = await context.services.slices.run(_named(listed, requested, context))
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in dict.fromkeys(request.state_filters) if name not in _NAMES],
        transaction_states=named,
    )


def _named(
    listed: Iterable[Listed], requested: TransactionFilter, context: BrokerContext
) -> Sliced[list[TransactionState]]:
    """Return the transactions that match the filter and that the client may describe."""
    named = []
    for found, now in listed:
        for one, known in found:
            if requested.lets_through(one, known, now) and _may_describe(one, context):
                state = known.state.value
                named.append(
                    TransactionState(transactional_id=one, producer_id=known.producer_id, transaction_state=state)
                )
            yield
    return named


def _may_describe(transactional_id: str, context: BrokerContext) -> bool:
    return may(context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id, is_requested=False)


def _matches(pattern: str | None) -> Callable[[str], object] | None:
    if not pattern:
        return None
    try:
        return matcher(pattern)
    except InvalidPatternError as error:
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from None
