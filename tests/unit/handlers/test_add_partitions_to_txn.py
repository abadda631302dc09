"""AddPartitionsToTxn: whose topics may be in a transaction, and large requests, which are cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.coordinator.runtime.errors import NotCoordinatorError
from pybroker.coordinator.transaction.events import VerifyPartitions
from pybroker.handlers.add_partitions_to_txn import _AT_ONCE, add_partitions_to_txn
from pybroker.machine.reply import Reply
from pybroker.machine.runner import UncommittedError
from pybroker.metadata.internal_topics import INTERNAL_TOPICS
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from tests.support.loop_turns import short_slices, turns_of

OK, ABORTABLE = ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE
UNKNOWN, NOT_ATTEMPTED = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
MANY = 20 * _AT_ONCE


class Coordinator:
    """Answers in the next turn: that what is added is, and that no transaction has what it is asked about."""

    def __init__(self, failure: Callable[[str], Exception | None] = lambda _id: None, *, at_once: bool = False) -> None:
        self.failure = failure
        self.at_once = at_once
        self.requested: list[str] = []
        self.in_hand = self.most_in_hand = 0

    def partition_for(self, transactional_id: str) -> int:
        return int(transactional_id.rpartition("-")[2]) % 2

    def submit(self, transactional_id: str, event: Any) -> Reply:
        self.requested.append(transactional_id)
        failure = self.failure(transactional_id)
        if failure is not None and self.at_once:
            raise failure
        codes = dict.fromkeys(event.partitions, ABORTABLE) if isinstance(event, VerifyPartitions) else None
        self.in_hand += 1
        self.most_in_hand = max(self.most_in_hand, self.in_hand)
        reply = Reply()
        asyncio.get_running_loop().call_soon(self._respond, reply, codes, failure)
        return reply

    def add(self, event: Any) -> Reply:
        return self.submit(event.transactional_id, event)

    def _respond(self, reply: Reply, codes: Any, failure: Exception | None) -> None:
        self.in_hand -= 1
        reply(None if failure else codes, failure)


def topics(*named: tuple[str, list[int]]) -> list[AddPartitionsToTxnTopic]:
    return [AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in named]


def of_client(*named: tuple[str, list[int]]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(v3_and_below_transactional_id="t-0", v3_and_below_topics=topics(*named))


def of_brokers(count: int, *named: tuple[str, list[int]], verify_only: bool = False) -> AddPartitionsToTxnRequest:
    """What brokers ask about so many transactions."""
    requested = [
        AddPartitionsToTxnTransaction(transactional_id=f"t-{number}", verify_only=verify_only, topics=topics(*named))
        for number in range(count)
    ]
    return AddPartitionsToTxnRequest(transactions=requested)


async def query(
    coordinator: Coordinator, request: AddPartitionsToTxnRequest, version: int
) -> tuple[AddPartitionsToTxnResponse, int]:
    """The answer to a request, and the turns of the loop that it left to others. There is a topic `t`."""
    there = SimpleNamespace(partitions=dict.fromkeys(range(10)))
    by_name = dict.fromkeys(["t", *INTERNAL_TOPICS], there)
    context: Any = SimpleNamespace(
        version=version,
        authorizer=None,
        image=SimpleNamespace(topics=SimpleNamespace(by_name=by_name)),
        services=SimpleNamespace(transactions=coordinator, slices=short_slices()),
    )
    response: Any = add_partitions_to_txn(request, context)
    return (response, 0) if isinstance(response, AddPartitionsToTxnResponse) else await turns_of(response)


def codes(results: list[AddPartitionsToTxnTopicResult]) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (topic.name, [(one.partition_index, one.partition_error_code) for one in topic.results_by_partition])
        for topic in results
    ]


@pytest.mark.parametrize("name", sorted(INTERNAL_TOPICS))
@pytest.mark.parametrize("many", [1, MANY])
async def test_a_client_adds_none_of_kafkas_own_topics_also_without_an_authorizer(name: str, many: int) -> None:
    coordinator = Coordinator()
    response, _ = await query(coordinator, of_client((name, [0]), ("t", [0] * many)), 3)
    refused = (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert codes(response.results_by_topic_v3_and_below) == [(name, [refused]), ("t", [(0, NOT_ATTEMPTED)] * many)]
    assert coordinator.requested == []


async def test_brokers_ask_about_kafkas_own_topics() -> None:
    response, _ = await query(Coordinator(), of_brokers(1, ("__consumer_offsets", [0])), 4)
    assert codes(response.results_by_transaction[0].topic_results) == [("__consumer_offsets", [(0, OK)])]


@pytest.mark.parametrize("failure", [None, NotCoordinatorError()])
@pytest.mark.parametrize("named", [[("t", [0] * MANY)], [("t", [])] * MANY])
async def test_many_partitions_or_topics_of_a_client_are_answered_in_turns(
    named: list[tuple[str, list[int]]], failure: Exception | None
) -> None:
    code = OK if failure is None else ErrorCode.NOT_COORDINATOR
    response, turns = await query(Coordinator(lambda _id: failure, at_once=True), of_client(*named), 3)
    assert codes(response.results_by_topic_v3_and_below) == [
        (name, [(index, code) for index in indexes]) for name, indexes in named
    ]
    assert turns > MANY // 100


@pytest.mark.parametrize(("verify_only", "code"), [(True, ABORTABLE), (False, OK)])
async def test_no_more_transactions_are_in_hand_than_are_decided_in_a_moment(
    verify_only: bool, code: ErrorCode
) -> None:
    coordinator = Coordinator()
    response, _ = await query(coordinator, of_brokers(MANY, ("t", [1]), verify_only=verify_only), 5)
    assert [one.transactional_id for one in response.results_by_transaction] == coordinator.requested
    assert [codes(one.topic_results) for one in response.results_by_transaction] == [[("t", [(1, code)])]] * MANY
    assert coordinator.most_in_hand <= _AT_ONCE


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (of_brokers(MANY), set()),
        (of_brokers(1, *[("t", [])] * MANY), set()),
        (of_brokers(1, ("t", [0] * MANY)), {ErrorCode.NOT_COORDINATOR}),
        (of_brokers(1, ("t", [0] * MANY), ("unknown", [0])), {NOT_ATTEMPTED, UNKNOWN}),
    ],
)
async def test_a_large_request_of_brokers_is_refused_in_turns(
    request_: AddPartitionsToTxnRequest, expected: set[ErrorCode]
) -> None:
    response, turns = await query(Coordinator(lambda _id: NotCoordinatorError(), at_once=True), request_, 5)
    assert len(response.results_by_transaction) == len(request_.transactions)
    of_first = codes(response.results_by_transaction[0].topic_results)
    assert {code for _, of_topic in of_first for _, code in of_topic} == expected
    assert turns >= MANY // _AT_ONCE


async def test_nothing_waits_for_a_coordinator_that_has_not_committed_in_time() -> None:
    def late(transactional_id: str) -> Exception | None:
        return UncommittedError("late") if transactional_id.endswith("1") else None

    coordinator = Coordinator(late)
    response, _ = await query(coordinator, of_brokers(MANY, ("t", [0])), 5)
    found = [
        one.topic_results[0].results_by_partition[0].partition_error_code for one in response.results_by_transaction
    ]
    first = len([one for one in coordinator.requested if coordinator.partition_for(one) == 1])
    assert first <= _AT_ONCE
    assert found[::2] == [OK] * (MANY // 2)
    assert found[1::2][first:] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * (MANY // 2 - first)


async def test_a_small_request_of_brokers_is_handed_in_at_once() -> None:
    coordinator = Coordinator(lambda id_: NotCoordinatorError() if id_ == "t-1" else None, at_once=True)
    request = of_brokers(3, ("t", [0]))
    request.transactions[2].transactional_id = ""
    response, turns = await query(coordinator, request, 5)
    found = [codes(one.topic_results)[0][1][0][1] for one in response.results_by_transaction]
    assert found == [OK, ErrorCode.NOT_COORDINATOR, ErrorCode.INVALID_REQUEST]
    assert turns <= 1
