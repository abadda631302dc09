"""Runs the state machine of a transactional producer: requests to the transaction and group coordinators.

Owns the requests, their retries and the errors for the program. The engine, which has the records, receives the
state of the transaction, and reports failed batches. It belongs to one event loop; methods for other threads are
marked as such.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import astuple
from typing import Any, TypeVar

from pybroker.client import native
from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.group_offsets import by_topic
from pybroker.client.errors import (
    BrokerError,
    ClientError,
    ConnectionLostError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionFatalError,
    TransactionStateError,
    TransactionTimeoutError,
    UnreachableError,
)
from pybroker.client.network.cluster import Cluster
from pybroker.client.network.connection import Connection
from pybroker.client.network.retry_budget import Backoff
from pybroker.client.network.retrying import retry
from pybroker.client.settings import ProducerSettings
from pybroker.client.transaction import events
from pybroker.client.transaction.consumed import Consumed
from pybroker.client.transaction.decisions import FENCED, Decision, Request, decide
from pybroker.client.transaction.group_metadata import GroupMetadata
from pybroker.client.transaction.machine import NO_ID, TransactionMachine, TransactionState
from pybroker.client.transaction.suspended import SuspendedTransaction
from pybroker.machine.transitions import TransitionError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import add_offsets_to_txn as offsets_messages
from pybroker.protocol.messages import add_partitions_to_txn as partitions_messages
from pybroker.protocol.messages import end_txn, init_producer_id, txn_offset_commit
from pybroker.protocol.messages.find_coordinator import GROUP, TRANSACTION

Response = TypeVar("Response")

_FEATURE = "transaction.version"
_LAST_VERSIONS_OF_CLIENTS = {24: 3, 28: 4}
"""By API key, the last version in which clients add partitions and offsets in advance.

Later versions are for brokers, or add them implicitly.
"""
_PAUSE_MS, _LONGEST_PAUSE_MS = 20, 50
"""Back-off of retries. Mostly the coordinator completes the previous transaction, in milliseconds (KAFKA-5482)."""
_AGAIN = {
    request: frozenset(code for code in ErrorCode if decide(request, code) in (Decision.AGAIN, Decision.SEARCH))
    for request in Request
}

_S = TransactionState


class TransactionDriver:
    """One producer's requests to its coordinators."""

    def __init__(self, producer: native.Producer, settings: ProducerSettings) -> None:
        assert settings.transactional_id is not None
        self.id = settings.transactional_id
        self.machine = TransactionMachine()
        self.cluster = Cluster(settings)
        self._settings = settings
        self._engine = native.Transactions(producer)
        self._lock = threading.Lock()
        self._unadded: list[TopicPartition] = []
        self._adding: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # ------------------------------------------------------------------------------------- called from any thread

    def begin(self) -> None:
        """Begin a transaction: records are accepted from now on. Raises TransactionError, TransactionStateError."""
        self.raise_failure()
        self._drive(events.Begun(), "begin_transaction")
        now = self.machine.transaction
        self._engine.begin(now.producer_id, now.epoch, now.is_implicit)

    def begin_end(self, *, commits: bool) -> None:
        """Start the end of the transaction: accept no more records, before the flush.

        Raises TransactionError, TransactionStateError.
        """
        self.note_failure()
        if commits or self.machine.transaction.state is _S.FATAL:
            self.raise_failure()
        self._drive(events.EndWanted(commits), "commit_transaction" if commits else "abort_transaction")
        self._engine.end()
        if not commits:
            self._engine.drop_unsent()

    def note_failure(self) -> None:
        """Pass a failure of the engine to the state machine."""
        state = self.machine.transaction.state
        failure = self._engine.failure() if state not in (_S.UNINITIALIZED, _S.INITIALIZING, _S.READY) else None
        if failure is not None:
            code, text, fatal, lost_sequence = failure
            self._drive(events.RecordsFailed(code, text, fatal, lost_sequence), "")

    def raise_failure(self) -> None:
        """Raise the failure of the transaction or the producer; do nothing without one."""
        transaction = self.machine.transaction
        if transaction.failure is None or transaction.state not in (_S.ABORTABLE, _S.FATAL):
            return
        code, text = transaction.failure
        text = f"transactional.id={self.id}: {text}"
        if transaction.state is _S.ABORTABLE:
            raise TransactionAbortableError(f"{text}; the transaction cannot be committed: abort it", code)
        if code in FENCED:
            raise ProducerFencedError(
                f"{text}: another producer has this transactional.id, or a transaction took longer than "
                f"transaction.timeout.ms={self._settings.transaction_timeout_ms}; close this producer",
                code,
            )
        raise TransactionFatalError(f"{text}; this producer can send nothing any more: close it", code)

    def identity(self) -> tuple[int, int]:
        """Return producer id and epoch. Raises TransactionError, TransactionStateError before there are any."""
        self.raise_failure()
        now = self.machine.transaction
        if now.producer_id == NO_ID:
            raise TransactionStateError(f"transactional.id={self.id} has no producer id yet: call init_transactions")
        return now.producer_id, now.epoch

    def suspend(self, flush: Callable[[], None]) -> SuspendedTransaction:
        """Accept no more records, flush, and release the open transaction. Raises as `end`."""
        self.note_failure()
        self.raise_failure()
        if self.machine.transaction.state is not _S.IN_TRANSACTION:
            self._drive(events.Suspended(), "suspend_transaction")
        self._engine.end()
        flush()
        self.note_failure()
        self.raise_failure()
        self._drive(events.Suspended(), "suspend_transaction")
        now = self.machine.transaction
        is_known = now.is_known or (now.is_implicit and self._engine.end())
        return SuspendedTransaction(self.id, now.producer_id, now.epoch, now.is_implicit, is_known)

    def resume(self, suspended: SuspendedTransaction) -> None:
        """Take over a suspended transaction, to end it. Raises TransactionStateError."""
        if suspended.transactional_id != self.id:
            raise TransactionStateError(
                f"transactional.id={self.id}: the transaction belongs to {suspended.transactional_id}"
            )
        _, producer_id, epoch, is_implicit, is_known = astuple(suspended)
        self._drive(events.Resumed(producer_id, epoch, is_implicit, is_known), "resume_transaction")

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and was neither committed nor aborted."""
        return self.machine.transaction.state in (_S.IN_TRANSACTION, _S.ABORTABLE)

    def timeout_error(self, call: str, error: ClientError) -> TransactionTimeoutError:
        """Return the error of a call without a response in time."""
        return TransactionTimeoutError(
            f"transactional.id={self.id}: {call}: {error}; its outcome is unknown: call it again",
            getattr(error, "code", 0),
        )

    def _drive(self, event: Any, call: str) -> Decision:
        with self._lock:
            try:
                outcome = self.machine.handle(event)
            except TransitionError:
                raise TransactionStateError(
                    f"transactional.id={self.id}: {call} is invalid in state {self.machine.transaction.state.name}; "
                    f"{_ORDER}"
                ) from None
            self.machine.apply(outcome.transaction)
        return outcome.decision

    # ----------------------------------------------------------------------------------------- for the event loop

    async def init(self, timeout_ms: int) -> None:
        """Get a producer id and epoch, which aborts an earlier producer's open transaction. Raises TransactionError."""
        self.raise_failure()
        self._drive(events.InitWanted(), "init_transactions")
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._engine.descriptor(), self._add_partitions)
        await self._initialize("init_transactions", timeout_ms)

    async def end(self, call: str, timeout_ms: int) -> None:
        """End the transaction at its coordinator, after all records have completed. Raises TransactionError."""
        if self._adding is not None:
            await asyncio.wait([self._adding], timeout=timeout_ms / 1000)
            if self._adding is not None:
                raise self.timeout_error(call, ConnectionLostError("partitions are still being added"))
        self.note_failure()
        now = self.machine.transaction
        if now.state in (_S.COMMITTING, _S.ABORTING):
            if now.is_known or (now.is_implicit and self._engine.end()):
                await self._within(call, self._query_end, timeout_ms)
            else:
                self._drive(events.EndCompleted(ErrorCode.NONE, "", NO_ID, -1, now.level), call)
        if self.machine.transaction.state is _S.INITIALIZING:
            await self._initialize(call, timeout_ms)
        if self.machine.transaction.state is _S.READY:
            self._engine.forget()
        self._fail_engine()
        self.raise_failure()

    async def send_offsets(self, consumed: Consumed, timeout_ms: int) -> None:
        """Commit offsets with the transaction. Raises TransactionError, TransactionStateError."""
        self.note_failure()
        self.raise_failure()
        now = self.machine.transaction
        if now.state is not _S.IN_TRANSACTION:
            raise TransactionStateError(
                f"transactional.id={self.id}: send_offsets_to_transaction is invalid in state {now.state.name}; "
                f"{_ORDER}"
            )
        if not consumed.offsets:
            return

        async def attempt() -> None:
            if not now.is_implicit:
                await self._query_add_offsets(consumed.group.group_id)
            if self.machine.transaction.state is _S.IN_TRANSACTION:
                await self._query_commit_offsets(consumed.offsets, consumed.group)

        try:
            await self._within("send_offsets_to_transaction", attempt, timeout_ms)
        except TransactionTimeoutError as error:
            self._drive(events.Unanswered(str(error)), "")
        self._fail_engine()
        self.raise_failure()

    async def close(self) -> None:
        """Close the connections."""
        if self._loop is not None:
            self._loop.remove_reader(self._engine.descriptor())
            self._loop = None
        if self._adding is not None:
            self._adding.cancel()
            await asyncio.gather(self._adding, return_exceptions=True)
        await self.cluster.close()

    # ------------------------------------------------------------------------------------------------- the requests

    async def _within(self, call: str, attempt: Callable[[], Awaitable[None]], timeout_ms: int) -> None:
        """Retry until a response is final. Raises TransactionTimeoutError."""
        pause_ms = min(_PAUSE_MS, self._settings.retry_backoff_ms)
        first = Backoff(pause_ms, max(pause_ms, _LONGEST_PAUSE_MS))
        try:
            await retry(self._settings, attempt, timeout_ms=timeout_ms, backoff=first)
        except (UnreachableError, ConnectionLostError, BrokerError) as error:
            raise self.timeout_error(call, error) from error

    async def _query(
        self, request: Request, key: str, kind: int, query: Callable[[Connection], Awaitable[tuple[Response, int]]]
    ) -> tuple[Response | None, int, str, int]:
        """Send a request to a coordinator until its response is final.

        Returns (response, error code, error message, level of transaction.version).
        """
        level = 0
        server = "the coordinator"

        async def once(connection: Connection) -> tuple[tuple[Response, int], int]:
            nonlocal level, server
            feature = connection.features.get(_FEATURE)
            level, server = 0 if feature is None else feature.level, connection.server
            response, code = await query(connection)
            return (response, code), code

        try:
            response, code = await self.cluster.query_coordinator(key, once, _AGAIN[request], kind)
        except BrokerError as error:
            if error.code in _AGAIN[request]:
                raise
            return None, error.code, str(error), level
        return response, code, f"{request.name}: {server} answered {_named(code)}", level

    async def _initialize(self, call: str, timeout_ms: int) -> None:
        await self._within(call, self._query_init, timeout_ms)
        self._fail_engine()
        self.raise_failure()

    async def _query_init(self) -> None:
        now = self.machine.transaction
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self.id,
            transaction_timeout_ms=self._settings.transaction_timeout_ms,
            producer_id=now.producer_id,
            producer_epoch=now.epoch,
        )

        async def query(connection: Connection) -> tuple[init_producer_id.InitProducerIdResponse, int]:
            response = await connection.query(request, init_producer_id.InitProducerIdResponse)
            return response, response.error_code

        response, code, text, level = await self._query(Request.INIT_PRODUCER_ID, self.id, TRANSACTION, query)
        given = (NO_ID, -1) if response is None else (response.producer_id, response.producer_epoch)
        self._drive(events.InitCompleted(code, text, *given, level), "init_transactions")

    async def _query_end(self) -> None:
        now = self.machine.transaction
        request = end_txn.EndTxnRequest(
            transactional_id=self.id,
            producer_id=now.producer_id,
            producer_epoch=now.epoch,
            committed=now.state is _S.COMMITTING,
        )
        # A later version ends transactions to which Produce adds partitions.
        newest = 32767 if now.is_implicit else 4

        async def query(connection: Connection) -> tuple[end_txn.EndTxnResponse, int]:
            response = await connection.query(request, end_txn.EndTxnResponse, newest)
            return response, response.error_code

        response, code, text, level = await self._query(Request.END, self.id, TRANSACTION, query)
        given = (NO_ID, -1) if response is None else (response.producer_id, response.producer_epoch)
        self._drive(events.EndCompleted(code, text, *given, level), "")

    async def _query_add_offsets(self, group_id: str) -> None:
        now = self.machine.transaction
        request = offsets_messages.AddOffsetsToTxnRequest(
            transactional_id=self.id, producer_id=now.producer_id, producer_epoch=now.epoch, group_id=group_id
        )

        async def query(connection: Connection) -> tuple[None, int]:
            response = await connection.query(request, offsets_messages.AddOffsetsToTxnResponse)
            return None, response.error_code

        _, code, text, _ = await self._query(Request.ADD_OFFSETS, self.id, TRANSACTION, query)
        self._drive(events.Completed(Request.ADD_OFFSETS, code, text), "")

    async def _query_commit_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        now = self.machine.transaction
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.id,
            group_id=group.group_id,
            producer_id=now.producer_id,
            producer_epoch=now.epoch,
            generation_id=group.generation,
            member_id=group.member_id,
            group_instance_id=group.instance_id,
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name=topic, partitions=[_offset(i, offsets[TopicPartition(topic, i)]) for i in indexes]
                )
                for topic, indexes in by_topic(offsets).items()
            ],
        )
        newest = 32767 if now.is_implicit else _LAST_VERSIONS_OF_CLIENTS[28]

        async def query(connection: Connection) -> tuple[None, int]:
            response = await connection.query(request, txn_offset_commit.TxnOffsetCommitResponse, newest)
            codes = [partition.error_code for topic in response.topics for partition in topic.partitions]
            return None, _worst(Request.COMMIT_OFFSETS, codes)

        _, code, text, _ = await self._query(Request.COMMIT_OFFSETS, group.group_id, GROUP, query)
        self._drive(events.Completed(Request.COMMIT_OFFSETS, code, f"group {group.group_id!r}: {text}"), "")

    # --------------------------------------------------------------- partitions, where Produce does not add them

    def _add_partitions(self) -> None:
        """Add the engine's new partitions to the transaction, where a Produce does not add them."""
        self._unadded += [TopicPartition(topic, index) for topic, index in self._engine.take_unadded()]
        if self._unadded and self._adding is None:
            self._adding = asyncio.ensure_future(self._add_all())

    async def _add_all(self) -> None:
        try:
            while self._unadded:
                partitions, self._unadded = self._unadded, []
                query = functools.partial(self._query_add, partitions)
                try:
                    await self._within("adding partitions", query, self._settings.delivery_timeout_ms)
                except ClientError as error:
                    self._drive(events.Unanswered(str(error)), "")
                self._fail_engine()
        finally:
            self._adding = None

    async def _query_add(self, partitions: Iterable[TopicPartition]) -> None:
        now = self.machine.transaction
        if now.state not in (_S.IN_TRANSACTION, _S.COMMITTING):
            return
        request = partitions_messages.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=now.producer_id,
            v3_and_below_producer_epoch=now.epoch,
            v3_and_below_topics=[
                partitions_messages.AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in by_topic(partitions).items()
            ],
        )

        async def query(connection: Connection) -> tuple[None, int]:
            newest = _LAST_VERSIONS_OF_CLIENTS[24]
            response = await connection.query(request, partitions_messages.AddPartitionsToTxnResponse, newest)
            results = [
                result for topic in response.results_by_topic_v3_and_below for result in topic.results_by_partition
            ]
            return None, _worst(Request.ADD_PARTITIONS, [result.partition_error_code for result in results])

        _, code, text, _ = await self._query(Request.ADD_PARTITIONS, self.id, TRANSACTION, query)
        if self._drive(events.Completed(Request.ADD_PARTITIONS, code, text), "") is Decision.DONE:
            self._engine.added([(partition.topic, partition.partition) for partition in partitions])

    def _fail_engine(self) -> None:
        """Have the engine reject records of a transaction that has failed here."""
        now = self.machine.transaction
        if now.failure is not None and now.state in (_S.ABORTABLE, _S.FATAL):
            self._engine.fail(now.failure.code, now.failure.text, now.state is _S.FATAL)


_ORDER = (
    "the order is init_transactions, then again and again begin_transaction and commit_transaction or abort_transaction"
)


def _worst(request: Request, codes: Iterable[int]) -> int:
    """Return the decisive error code: first a transient one, so that the rest is retried, then a fatal one."""
    order = (Decision.SEARCH, Decision.AGAIN, Decision.FATAL, Decision.NEW_EPOCH, Decision.ABORTABLE, Decision.DONE)
    refused = [code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED] or list(codes)
    return min(refused, key=lambda code: order.index(decide(request, code)), default=ErrorCode.NONE)


def _named(code: int) -> str:
    known = next((known for known in ErrorCode if known == code), None)
    return f"error {code}" if known is None else f"{known.name} ({code})"


def _offset(index: int, offset: OffsetAndMetadata) -> txn_offset_commit.TxnOffsetCommitRequestPartition:
    return txn_offset_commit.TxnOffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )
