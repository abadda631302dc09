"""DescribeTransactions: each transactional id once, and many in turns of the loop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pybroker.coordinator.runtime.errors import NotCoordinatorError
from pybroker.coordinator.transaction.states import TransactionState
from pybroker.handlers.describe_transactions import describe_transactions
from pybroker.handlers.registry import definition
from pybroker.machine.reply import Reply
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from tests.support.loop_turns import short_slices, turns_of

MANY = 4_000


class Coordinator:
    """Has an open transaction of every id that it is asked about, or coordinates none."""

    def __init__(self, *, coordinates: bool = True, partitions: frozenset[tuple[str, int]] = frozenset()) -> None:
        self.coordinates = coordinates
        self.partitions = partitions
        self.requested: list[str] = []

    def submit(self, transactional_id: str, _event: Any) -> Reply:
        self.requested.append(transactional_id)
        if not self.coordinates:
            raise NotCoordinatorError
        known = SimpleNamespace(
            partitions=self.partitions,
            is_prepared=False,
            state=TransactionState.ONGOING,
            timeout_ms=1,
            started_ms=2,
            producer_id=7,
            producer_epoch=0,
        )
        reply = Reply()
        reply(known, None)
        return reply


async def query(coordinator: Coordinator, *transactional_ids: str) -> tuple[DescribeTransactionsResponse, int]:
    """The answer, and the turns of the loop that it left to others."""
    context: Any = SimpleNamespace(
        authorizer=None, services=SimpleNamespace(transactions=coordinator, slices=short_slices())
    )
    request = DescribeTransactionsRequest(transactional_ids=list(transactional_ids))
    return await turns_of(describe_transactions(request, context))


async def test_an_id_that_is_named_more_than_once_is_described_once() -> None:
    coordinator = Coordinator(partitions=frozenset({("b", 0), ("a", 2), ("a", 1)}))
    response, _ = await query(coordinator, "t", "", "u", "t", "", "t")
    described = [(one.transactional_id, one.error_code) for one in response.transaction_states]
    assert described == [("t", ErrorCode.NONE), ("", ErrorCode.INVALID_REQUEST), ("u", ErrorCode.NONE)]
    assert coordinator.requested == ["t", "u"]
    named = [(topic.topic, topic.partitions) for topic in response.transaction_states[0].topics]
    assert named == [("a", [1, 2]), ("b", [0])]


def test_an_id_that_is_named_more_than_once_is_refused_once() -> None:
    request = DescribeTransactionsRequest(transactional_ids=["t", "u", "t"])
    api: Any = definition("describe_transactions")
    refused = api.failed(request, SimpleNamespace(version=0), NotCoordinatorError())
    assert [one.transactional_id for one in refused.transaction_states] == ["t", "u"]


async def test_ids_that_are_not_coordinated_here_are_answered_in_turns() -> None:
    response, turns = await query(Coordinator(coordinates=False), *map(str, range(MANY)))
    assert {one.error_code for one in response.transaction_states} == {ErrorCode.NOT_COORDINATOR}
    assert turns >= MANY // 100


async def test_the_partitions_of_a_large_transaction_are_named_in_turns() -> None:
    response, turns = await query(Coordinator(partitions=frozenset(("a", index) for index in range(MANY))), "t")
    assert response.transaction_states[0].topics[0].partitions == list(range(MANY))
    assert turns >= MANY // 101
