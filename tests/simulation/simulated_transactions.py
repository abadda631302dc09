"""Transactions of one simulated process: the real coordinator, the real verification, and markers, over the network.

Owns what a broker is asked by others about transactions, and by its clients. Must not know schedules, nor what clients
believe. What is planted as a fault comes in by `Faults`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pybroker.broker.transaction_verification import Producer, TransactionVerification
from pybroker.client.errors import UnreachableError
from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.coordinator.runtime.commits import CommitWaits
from pybroker.coordinator.runtime.kind import RuntimeSettings
from pybroker.coordinator.transaction.events import (
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducerId,
    ProducerIdentity,
    VerifyPartitions,
)
from pybroker.coordinator.transaction.service import FreshIds, TransactionCoordinator
from pybroker.coordinator.transaction.settings import TransactionSettings
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC
from pybroker.handlers.errors import wire_error
from pybroker.handlers.txn_offset_commit import txn_offset_commit
from pybroker.machine.slices import Slices
from pybroker.net.native import confirm_transaction
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from pybroker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from pybroker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.simulation.simulated_network import LostError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pybroker.coordinator.transaction.own_partitions import EndedHere
    from tests.simulation.simulated_node import SimulatedNode

TIMEOUT_MS = 2500
"""Of a transaction."""
SETTINGS = TransactionSettings(
    max_timeout_ms=TIMEOUT_MS, id_expiration_ms=10**9, abort_interval_ms=300, expiration_interval_ms=10**8
)
_CALL_S = 1.0
_POLL_INTERVAL_S = 0.01
_NOT_COORDINATED_HERE = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)
VerificationResults = list[tuple[int, str | None] | None]


class _Appended(NamedTuple):
    """A marker in a log: the leader's broker and epoch, and where the log ended behind it."""

    broker: Any
    partition: Any
    leader_epoch: int
    end: int


class OwnMarkers:
    """An `OwnPartitions`: the markers of partitions that this process leads, appended at once, and waited for."""

    def __init__(self, transactions: NodeTransactions) -> None:
        self._transactions = transactions

    def takes(self, topic: str) -> bool:
        return topic != OFFSETS_TOPIC

    def write(self, ended: Sequence[EndedHere], then: Callable[[list[int]], None]) -> None:
        appended = [
            self._transactions.append_marker(topic, index, tuple(one[1:]))
            for one in ended
            for topic, index in one.partitions
        ]
        self._transactions.run(self._wait(appended, then))

    async def _wait(self, appended: list[Any], then: Callable[[list[int]], None]) -> None:
        then([await self._transactions.code_of(one) for one in appended])

    def confirm(self, added: AddPartitions, coordinator_epoch: int) -> None:
        self._transactions.confirm(added, coordinator_epoch)


class NodeTransactions:
    """See the module. One for each life of a process."""

    def __init__(self, node: SimulatedNode, clock: Any) -> None:
        self._node, self._faults = node, node.world.faults
        self.commits = CommitWaits()
        self.coordinator = TransactionCoordinator(
            SETTINGS,
            RuntimeSettings(node_id=node.number, partitions=1, commit_timeout_ms=1000, load_bytes=1 << 16),
            open_log=lambda index: node.open_log(STATE_TOPIC, index, self.commits.append_completed),
            commits=self.commits,
            fresh_ids=FreshIds(take=node.world.next_producer_id, take_after_refill=self._never),
            query_broker=self._query_markers,
            own=OwnMarkers(self),
            clock=clock,
        )
        self._verification = TransactionVerification(self, self._coordinator_of, timeout_ms=lambda: 1000)  # type: ignore[arg-type]

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something as long as this process lives."""
        self._node.begin_task(work)

    def confirm(self, added: AddPartitions, coordinator_epoch: int) -> None:
        """Have partitions that this process leads know that a transaction has them."""
        found = [partition for one in sorted(added.partitions) if (partition := self._node.find(*one)) is not None]
        if found:
            now_ms = self._node.loop.now_ms()
            confirm_transaction(found, added.transactional_id, *added.identity, coordinator_epoch, now_ms)

    async def _never(self) -> int:
        raise AssertionError("there is always a fresh id")

    def _coordinator_of(self, _transactional_id: str) -> int | None:
        found = self._node.in_force.topics.by_name.get(STATE_TOPIC)
        return None if found is None or found.partitions[0].leader < 0 else found.partitions[0].leader

    # ------------------------------------------------------------------------------------------- what others are asked

    async def send(self, broker: int, request: Any, _response: Any, *, timeout_ms: int) -> Any:
        """Ask a broker; raises `UnreachableError` where it does not answer."""
        other = self._node.world.nodes[broker]
        try:
            return await self._node.network.call(
                self._node.number, broker, other.take_transactions, request, within=timeout_ms / 1000
            )
        except LostError:
            raise UnreachableError(f"broker {broker} does not answer") from None

    async def _query_markers(self, broker: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        response: WriteTxnMarkersResponse = await self.send(broker, request, None, timeout_ms=1500)
        return response

    async def verify(
        self, producer: tuple[str, int, int], version: int, partitions: Sequence[tuple[str, int]]
    ) -> VerificationResults:
        """Ask the coordinator for a Produce that waits."""
        if self._faults.verifies_nothing:
            return [None] * len(partitions)
        return await self._verification.of_produce(Producer(*producer), version, partitions)

    # ------------------------------------------------------------------------------------------------ who asks this one

    async def take(self, request: Any) -> Any:
        """Answer another broker."""
        if isinstance(request, WriteTxnMarkersRequest):
            return await self._write(request)
        assert isinstance(request, AddPartitionsToTxnRequest)
        results = [await self._add(requested) for requested in request.transactions]
        return AddPartitionsToTxnResponse(results_by_transaction=results)

    async def decide(self, event: Any) -> Any:
        """Answer a client: its event's reply; raises what the coordinator refuses with."""
        if isinstance(event, AddPartitions):
            are_offsets = any(topic == OFFSETS_TOPIC for topic, _ in event.partitions)
            if are_offsets:
                return await self.coordinator.submit(event.transactional_id, event)
            return await self.coordinator.add(event)
        if isinstance(event, InitProducerId) and self._faults.gives_epochs_again:
            known = await self._known(event.transactional_id)
            if known is not None:
                return known
        if isinstance(event, EndTransaction):
            if self._faults.keeps_epochs:
                event = msgspec.structs.replace(event, client_version=0)
            if self._faults.marks_before_prepared:
                await self._mark_early(event)
        reply = await self.coordinator.submit_with_id(event)
        return event.identity if isinstance(event, EndTransaction) and self._faults.keeps_epochs else reply

    async def commit_offsets(self, request: TxnOffsetCommitRequest, version: int) -> int:
        """Answer a TxnOffsetCommit of one partition, as the handler does; its error code."""
        services = SimpleNamespace(
            slices=Slices(lambda: 0.0),  # no work takes time
            groups=self._node.groups,
            verification=self._verification,
            config=SimpleNamespace(transaction_partition_verification_enable=True),
        )
        context = SimpleNamespace(services=services, image=self._node.in_force, version=version)
        response = await txn_offset_commit(request, context)  # type: ignore[arg-type]
        return int(response.topics[0].partitions[0].error_code)

    async def _known(self, transactional_id: str) -> ProducerIdentity | None:
        """Planted: who begins anew gets the epoch that is in force, which the instance before has too."""
        try:
            found = await self.coordinator.submit(transactional_id, DescribeTransaction(transactional_id))
        except Exception:  # noqa: BLE001 - it is not known
            return None
        return ProducerIdentity(found.producer_id, found.producer_epoch)

    async def _mark_early(self, event: EndTransaction) -> None:
        """Planted: markers go before it is on disk that they are due."""
        found = await self.coordinator.submit(event.transactional_id, DescribeTransaction(event.transactional_id))
        if found.producer_epoch != event.identity.producer_epoch or found.is_prepared:
            return
        marker = WritableTxnMarker(
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch + 1,
            transaction_result=event.commit,
            topics=[WritableTxnMarkerTopic(name=name, partition_indexes=[index]) for name, index in found.partitions],
            coordinator_epoch=0,
            transaction_version=2,
        )
        for topic in marker.topics:
            partition = self._node.in_force.topics.by_name[topic.name].partitions[0]
            if partition.leader >= 0:
                alone = msgspec.structs.replace(marker, topics=[topic])
                try:
                    await self._query_markers(partition.leader, WriteTxnMarkersRequest(markers=[alone]))
                except UnreachableError:
                    continue

    async def _add(self, requested: AddPartitionsToTxnTransaction) -> AddPartitionsToTxnResult:
        places = frozenset((topic.name, index) for topic in requested.topics for index in topic.partitions)
        identity = ProducerIdentity(requested.producer_id, requested.producer_epoch)
        event: Any = AddPartitions(requested.transactional_id, identity, places, 2)
        if requested.verify_only:
            event = VerifyPartitions(requested.transactional_id, identity, places)
        codes = dict.fromkeys(places, int(ErrorCode.NONE))
        try:
            codes.update(await self.coordinator.submit(requested.transactional_id, event) or {})
        except Exception as error:  # noqa: BLE001 - whatever it is: it is the answer
            codes = dict.fromkeys(places, int(wire_error(error).code))
        topics = [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=codes[topic.name, index]
                    )
                    for index in topic.partitions
                ],
            )
            for topic in requested.topics
        ]
        return AddPartitionsToTxnResult(transactional_id=requested.transactional_id, topic_results=topics)

    async def _write(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        results = []
        for marker in request.markers:
            topics = []
            for topic in marker.topics:
                codes = [(index, await self._append(topic.name, index, marker)) for index in topic.partition_indexes]
                topics.append(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index, code in codes
                        ],
                    )
                )
            results.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
        return WriteTxnMarkersResponse(markers=results)

    async def _append(self, topic: str, index: int, marker: WritableTxnMarker) -> int:
        """Append a marker, and wait until it is committed; its error code."""
        if topic == OFFSETS_TOPIC:
            return await self._end_in_groups(index, marker)
        made = (
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
        return await self.code_of(self.append_marker(topic, index, made))

    def append_marker(self, topic: str, index: int, made: Any) -> int | _Appended:
        """Append a marker; an error code where it could not be."""
        partition = self._node.find(topic, index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        broker, epoch = self._node.broker, partition.leader_epoch
        broker.touch()
        try:
            end = broker.plane.append_marker(partition, made)[1] + 1
        except Exception as error:  # noqa: BLE001 - whatever it is: it is the answer
            return wire_error(error).code
        broker.poke()
        return _Appended(broker, partition, epoch, end)

    async def code_of(self, appended: int | _Appended) -> int:
        """Wait until an appended marker is committed; its error code."""
        if isinstance(appended, int):
            return appended
        (broker, partition, epoch, end), node = appended, self._node
        until = node.loop.time() + _CALL_S
        while node.loop.time() < until:
            if partition.role != "leader" or partition.leader_epoch != epoch:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            if broker.plane.has_completed(partition, epoch, end):
                return ErrorCode.NONE
            await asyncio.sleep(_POLL_INTERVAL_S)
        return ErrorCode.REQUEST_TIMED_OUT

    async def _end_in_groups(self, index: int, marker: WritableTxnMarker) -> int:
        """Have the group coordinator write a marker; its error code."""
        if self._faults.forgets_offsets:
            return ErrorCode.NONE
        try:
            async with asyncio.timeout(_CALL_S):
                await self._node.groups.complete_transaction(
                    index,
                    marker.producer_id,
                    marker.producer_epoch,
                    marker.coordinator_epoch,
                    marker.transaction_result,
                    marker.transaction_version,
                )
        except TimeoutError:
            return ErrorCode.REQUEST_TIMED_OUT
        except Exception as error:  # noqa: BLE001 - whatever it is: it is the answer
            code = wire_error(error).code
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _NOT_COORDINATED_HERE else code
        return ErrorCode.NONE
