"""TransactionVerification: verifies with the transaction coordinator that partitions are part of a transaction.

Owns the requests of this broker to coordinators (KIP-890): one AddPartitionsToTxn at a time to each broker, with all
transactions that waited meanwhile. Owns the mapping of its errors to errors for the client. Must not know logs, nor the
consequences of an error.

Source: Kafka's AddPartitionsToTxnManager, and ReplicaManager's handling of its results.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from pybroker.client.errors import ClientError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pybroker.broker.broker_channel import BrokerChannel

log = logging.getLogger("pybroker.broker")

TopicPartition = tuple[str, int]
Errors = dict[TopicPartition, ErrorCode]
"""The error of each requested partition; NONE if it is part of the transaction."""

_BACKOFF_S, _LONGEST_S = 0.02, 0.1
"""`add.partitions.to.txn.retry.backoff.ms` and `add.partitions.to.txn.retry.backoff.max.ms`."""
_ADDS_FROM_PRODUCE, _ABORTABLE_FROM_PRODUCE = 12, 11
"""The first Produce version that adds partitions implicitly, and the first whose clients know TRANSACTION_ABORTABLE."""
_ADDS_FROM_COMMIT, _ABORTABLE_FROM_COMMIT = 5, 4
"""The same versions of TxnOffsetCommit."""
_UNVERIFIED = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors that older producers do not retry.

They receive NOT_ENOUGH_REPLICAS instead, which is retried without a metadata update.
"""


class VerificationMode(Enum):
    """The operation on the transaction that a client's request needs."""

    VERIFY_OR_STATE = "verify; the client does not know TRANSACTION_ABORTABLE"
    VERIFY = "verify"
    ADD = "add what is not part of the transaction yet"

    @staticmethod
    def of_produce(version: int) -> VerificationMode:
        """Return the operation of a Produce version."""
        return _mode(version, _ADDS_FROM_PRODUCE, _ABORTABLE_FROM_PRODUCE)

    @staticmethod
    def of_txn_offset_commit(version: int) -> VerificationMode:
        """Return the operation of a TxnOffsetCommit version."""
        return _mode(version, _ADDS_FROM_COMMIT, _ABORTABLE_FROM_COMMIT)


def _mode(version: int, adds_from: int, abortable_from: int) -> VerificationMode:
    if version >= adds_from:
        return VerificationMode.ADD
    return VerificationMode.VERIFY if version >= abortable_from else VerificationMode.VERIFY_OR_STATE


class Producer(msgspec.Struct, frozen=True):
    """The producer of a transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class TransactionVerification:
    """Sends verification requests to transaction coordinators. Used from one event loop."""

    def __init__(
        self, channel: BrokerChannel, coordinator_of: Callable[[str], int | None], *, timeout_ms: Callable[[], int]
    ) -> None:
        """`coordinator_of` returns the id of a transactional id's coordinator, None if there is none."""
        self._channel = channel
        self._coordinator_of = coordinator_of
        self._timeout_ms = timeout_ms
        # Waiting verifications by broker. Invariant: a broker is a key exactly while a request to it is in flight.
        self._next: dict[int, dict[str, _Question]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def verify(self, producer: Producer, partitions: Sequence[TopicPartition], mode: VerificationMode) -> Errors:
        """Return the coordinator's result for each partition, as an error for the client. Raises nothing.

        If partitions are added, CONCURRENT_TRANSACTIONS is retried here for a short time, which costs less than a retry
        of the client.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + min(_LONGEST_S, self._timeout_ms() / 1000)
        while True:
            errors = await self._query(producer, partitions, mode)
            is_early = mode is VerificationMode.ADD and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
            if not is_early or loop.time() >= until:
                return errors
            await asyncio.sleep(_BACKOFF_S)

    async def of_produce(
        self, producer: Producer, version: int, partitions: Sequence[TopicPartition]
    ) -> list[tuple[int, str | None] | None]:
        """Return for each partition the error code and message that reject the append, or None if it is verified."""
        mode = VerificationMode.of_produce(version)
        errors = await self.verify(producer, partitions, mode)
        return [_refusal(errors[partition], mode) for partition in partitions]

    async def _query(self, producer: Producer, partitions: Sequence[TopicPartition], mode: VerificationMode) -> Errors:
        broker = self._coordinator_of(producer.transactional_id)
        if broker is None:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        question = _Question(producer, partitions, mode, asyncio.get_running_loop().create_future())
        self._enqueue(broker, question)
        return await question.response

    def _enqueue(self, broker: int, question: _Question) -> None:
        """Add a verification to the next request to a broker.

        Of two for one transactional id, the newer producer epoch wins.
        """
        waiting = self._next.get(broker)
        if waiting is None:
            self._next[broker] = {}
            self._send(broker, [question])
            return
        before = waiting.get(question.producer.transactional_id)
        if before is not None:
            older, newer = before.producer.producer_epoch, question.producer.producer_epoch
            if newer < older:
                question.refuse(ErrorCode.INVALID_PRODUCER_EPOCH)
                return
            # With the same epoch, the client has most likely retried.
            before.refuse(ErrorCode.NETWORK_EXCEPTION if newer == older else ErrorCode.INVALID_PRODUCER_EPOCH)
        waiting[question.producer.transactional_id] = question

    def _send(self, broker: int, questions: list[_Question]) -> None:
        task = asyncio.get_running_loop().create_task(self._query_broker(broker, questions))
        self._tasks.add(task)
        task.add_done_callback(lambda requested: self._end(requested, broker, questions))

    async def _query_broker(self, broker: int, questions: list[_Question]) -> None:
        try:
            await self._respond(broker, questions)
        except ClientError as error:
            log.warning("Verifying transactions at broker %d failed: no response: %s", broker, error)

    def _end(self, requested: asyncio.Task[None], broker: int, questions: list[_Question]) -> None:
        """Fail verifications without a result, and send those that waited meanwhile.

        This is the task's callback instead of a `finally`, because a garbage-collected coroutine has no loop for
        responses.
        """
        self._tasks.discard(requested)
        for question in questions:
            question.refuse(ErrorCode.NETWORK_EXCEPTION)  # Has no effect on verifications with a result.
        following = list(self._next.pop(broker).values())
        if following:
            self._next[broker] = {}
            self._send(broker, following)

    async def _respond(self, broker: int, questions: list[_Question]) -> None:
        request = AddPartitionsToTxnRequest(transactions=[question.transaction() for question in questions])
        response = await self._channel.send(broker, request, AddPartitionsToTxnResponse, timeout_ms=self._timeout_ms())
        if response.error_code:
            # The missing authorization is this broker's, not the client's.
            refused = response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            log.error("Verifying transactions at broker %d failed: %s", broker, ErrorCode(response.error_code).name)
            for question in questions:
                question.refuse(ErrorCode.INVALID_TXN_STATE if refused else ErrorCode(response.error_code))
            return
        by_id = {question.producer.transactional_id: question for question in questions}
        for result in response.results_by_transaction:
            requested = by_id.get(result.transactional_id)
            if requested is not None:
                requested.complete(
                    {
                        (topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
                        for topic in result.topic_results
                        for partition in topic.results_by_partition
                    }
                )


class _Question(msgspec.Struct, frozen=True):
    """A verification: one transaction's partitions, and the future of the result."""

    producer: Producer
    partitions: Sequence[TopicPartition]
    mode: VerificationMode
    response: asyncio.Future[Errors]

    def transaction(self) -> AddPartitionsToTxnTransaction:
        """Return the verification as an element of a request."""
        topics: dict[str, list[int]] = {}
        for topic, index in self.partitions:
            topics.setdefault(topic, []).append(index)
        return AddPartitionsToTxnTransaction(
            transactional_id=self.producer.transactional_id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            verify_only=self.mode is not VerificationMode.ADD,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in topics.items()],
        )

    def refuse(self, code: ErrorCode) -> None:
        """Complete with one error for all partitions, unless it is complete."""
        if not self.response.done():
            self.response.set_result(dict.fromkeys(self.partitions, code))

    def complete(self, reported: Errors) -> None:
        """Complete with the coordinator's errors, mapped to errors that the client expects."""
        if self.response.done():
            return
        errors: Errors = {}
        for partition in self.partitions:
            # A partition that is missing in the response is not verified.
            code = reported.get(partition, ErrorCode.INVALID_TXN_STATE)
            if code == ErrorCode.PRODUCER_FENCED:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            elif code == ErrorCode.TRANSACTION_ABORTABLE and self.mode is VerificationMode.VERIFY_OR_STATE:
                code = ErrorCode.INVALID_TXN_STATE
            errors[partition] = code
        self.response.set_result(errors)


def _refusal(code: ErrorCode, mode: VerificationMode) -> tuple[int, str | None] | None:
    if code == ErrorCode.NONE:
        return None
    if code in _UNVERIFIED or (code == ErrorCode.CONCURRENT_TRANSACTIONS and mode is not VerificationMode.ADD):
        return (
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"it is not known whether the partition is part of the transaction: {code.name}",
        )
    if code == ErrorCode.INVALID_TXN_STATE:
        return code, "the partition was not added to the transaction"
    return code, None
