"""Questions to coordinators of transactions, with brokers that a script answers for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from pybroker.broker.transaction_verification import Producer, TransactionVerification, VerificationMode
from pybroker.client.errors import ConnectionLostError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

ME = Producer("me", 7, 3)
T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
OLD, NEWER, ADDS = 10, 11, 12
"""Versions of Produce."""

Response = Callable[[AddPartitionsToTxnRequest], AddPartitionsToTxnResponse]


class Brokers:
    """Stands for the channel to other brokers; each question waits until it is answered."""

    def __init__(self) -> None:
        self.requested: asyncio.Queue[tuple[AddPartitionsToTxnRequest, asyncio.Future[Any]]] = asyncio.Queue()

    async def send(self, _broker: int, request: Any, _response: type, *, timeout_ms: int) -> Any:
        assert timeout_ms == 1000
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.requested.put_nowait((request, response))
        return await response

    async def respond(self, reported: Response | Exception) -> AddPartitionsToTxnRequest:
        """Answer the question that has waited longest."""
        request, response = await self.requested.get()
        if isinstance(reported, Exception):
            response.set_exception(reported)
        else:
            response.set_result(reported(request))
        return request


def with_codes(*codes: ErrorCode) -> Response:
    """Answer each transaction's partitions with these errors, in their order."""

    def respond(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        left = iter(codes)
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=one.transactional_id,
                    topic_results=[
                        AddPartitionsToTxnTopicResult(
                            name=topic.name,
                            results_by_partition=[
                                AddPartitionsToTxnPartitionResult(
                                    partition_index=index, partition_error_code=next(left)
                                )
                                for index in topic.partitions
                            ],
                        )
                        for topic in one.topics
                    ],
                )
                for one in request.transactions
            ]
        )

    return respond


def verification(brokers: Any, coordinators: Iterable[int | None] = (1,)) -> TransactionVerification:
    known = list(coordinators)
    return TransactionVerification(
        brokers, lambda _id: known.pop(0) if len(known) > 1 else known[0], timeout_ms=lambda: 1000
    )


async def refusals(version: int, code: ErrorCode) -> tuple[int, str | None] | None:
    brokers = Brokers()
    querying = asyncio.create_task(verification(brokers).of_produce(ME, version, [T0]))
    await brokers.respond(with_codes(code))
    return (await querying)[0]


async def test_a_question_names_the_producer_and_its_partitions_by_topic() -> None:
    brokers = Brokers()
    querying = asyncio.create_task(verification(brokers).verify(ME, [T0, U0, T1], VerificationMode.VERIFY))
    none = ErrorCode.NONE
    request = await brokers.respond(with_codes(none, none, ErrorCode.TRANSACTION_ABORTABLE))
    (one,) = request.transactions
    assert (one.transactional_id, one.producer_id, one.producer_epoch, one.verify_only) == ("me", 7, 3, True)
    assert [(topic.name, topic.partitions) for topic in one.topics] == [("t", [0, 1]), ("u", [0])]
    assert await querying == {T0: none, T1: none, U0: ErrorCode.TRANSACTION_ABORTABLE}


@pytest.mark.parametrize(("version", "verify_only"), [(OLD, True), (NEWER, True), (ADDS, False)])
async def test_newer_producers_have_their_partitions_added(version: int, *, verify_only: bool) -> None:
    brokers = Brokers()
    querying = asyncio.create_task(verification(brokers).of_produce(ME, version, [T0]))
    request = await brokers.respond(with_codes(ErrorCode.NONE))
    assert request.transactions[0].verify_only is verify_only
    assert await querying == [None]


@pytest.mark.parametrize(
    ("version", "code", "expected"),
    [
        (OLD, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (NEWER, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (OLD, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (OLD, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (NEWER, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        (NEWER, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (NEWER, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (NEWER, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
    ],
)
async def test_a_producer_gets_errors_that_its_version_knows(
    version: int, code: ErrorCode, expected: ErrorCode
) -> None:
    refused = await refusals(version, code)
    assert refused is not None
    assert refused[0] == expected


async def test_a_partition_that_the_answer_leaves_out_is_not_verified() -> None:
    brokers = Brokers()
    querying = asyncio.create_task(verification(brokers).verify(ME, [T0], VerificationMode.VERIFY))
    await brokers.respond(lambda _: AddPartitionsToTxnResponse())
    # Nothing was said of the transaction at all: the next try may find out.
    assert await querying == {T0: ErrorCode.NETWORK_EXCEPTION}


async def test_a_coordinator_that_nobody_knows_or_reaches_is_looked_for_again() -> None:
    assert await verification(None, [None]).of_produce(ME, NEWER, [T0]) == [
        (
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "it is not known whether the partition is part of the transaction: COORDINATOR_NOT_AVAILABLE",
        )
    ]
    brokers = Brokers()
    querying = asyncio.create_task(verification(brokers).of_produce(ME, NEWER, [T0]))
    await brokers.respond(ConnectionLostError("gone"))
    (refused,) = await querying
    assert refused is not None
    assert refused[0] == ErrorCode.NOT_ENOUGH_REPLICAS


async def test_that_this_broker_may_not_ask_is_none_of_the_clients_business() -> None:
    brokers = Brokers()
    querying = asyncio.create_task(verification(brokers).verify(ME, [T0], VerificationMode.ADD))
    await brokers.respond(lambda _: AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    assert await querying == {T0: ErrorCode.INVALID_TXN_STATE}


async def test_a_transaction_that_is_not_over_is_asked_for_again_where_partitions_are_added() -> None:
    brokers = Brokers()
    querying = asyncio.create_task(verification(brokers).verify(ME, [T0], VerificationMode.ADD))
    await brokers.respond(with_codes(ErrorCode.CONCURRENT_TRANSACTIONS))
    await brokers.respond(with_codes(ErrorCode.NONE))
    assert await querying == {T0: ErrorCode.NONE}


async def test_what_comes_while_a_question_is_under_way_is_asked_together() -> None:
    brokers = Brokers()
    queries = verification(brokers)
    producers = [Producer(str(number), number, 0) for number in range(5)]
    querying = [asyncio.create_task(queries.verify(one, [T0], VerificationMode.ADD)) for one in producers]
    first = await brokers.respond(with_codes(ErrorCode.NONE))
    second = await brokers.respond(with_codes(*[ErrorCode.NONE] * 4))
    assert [len(request.transactions) for request in (first, second)] == [1, 4]
    assert await asyncio.gather(*querying) == [{T0: ErrorCode.NONE}] * 5


async def test_of_one_transactions_questions_the_newest_producers_is_asked() -> None:
    brokers = Brokers()
    queries = verification(brokers)
    busy = asyncio.create_task(queries.verify(Producer("other", 1, 0), [T0], VerificationMode.ADD))
    _, first = await brokers.requested.get()
    querying = [
        asyncio.create_task(queries.verify(Producer("me", 7, epoch), [T0], VerificationMode.VERIFY))
        for epoch in (3, 3, 4, 2)
    ]
    codes = [(await querying[at])[T0] for at in (0, 1, 3)]
    assert codes == [
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ]
    first.set_exception(ConnectionLostError("gone"))
    request = await brokers.respond(with_codes(ErrorCode.NONE))
    assert [one.producer_epoch for one in request.transactions] == [4]
    assert await querying[2] == {T0: ErrorCode.NONE}
    assert await busy == {T0: ErrorCode.NETWORK_EXCEPTION}
