"""Admin's calls that list, describe and abort transactions, and fence their producers (KIP-664).

Owns the choice of the node: the coordinator of a transactional id, a partition's leader, or every broker.
`AsyncAdmin` inherits the calls.

Source: Kafka's DescribeTransactionsHandler, ListTransactionsHandler, DescribeProducersHandler,
AbortTransactionHandler and FenceProducersHandler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.administration.transactions import (
    NOTHING,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from pybroker.client.errors import BrokerError, ClientError
from pybroker.client.network.cluster import SEND_AGAIN, Cluster, partition_refusal, raise_first, raise_refused, retried
from pybroker.client.network.connection import Connection
from pybroker.client.network.leaders import find_leaders
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import describe_producers as producers
from pybroker.protocol.messages import describe_transactions as describe
from pybroker.protocol.messages import list_transactions as listing
from pybroker.protocol.messages import write_txn_markers as markers
from pybroker.protocol.messages.find_coordinator import TRANSACTION
from pybroker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_FENCES_AGAIN = SEND_AGAIN | {ErrorCode.CONCURRENT_TRANSACTIONS}
"""An open transaction is aborted first. The request is retried until the coordinator has completed the abort."""


class TransactionCalls:
    """The calls about transactions."""

    cluster: Cluster

    @retried
    async def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        longer_than_ms: int = NOTHING,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Return the transactional ids of all coordinators that match every filter, without a filter all that the
        client may describe.

        Filters are states, producer ids, a duration in ms that the open transaction exceeds (KIP-994), and an RE2
        pattern of the transactional id (KIP-1152).

        Raises BrokerError, ClientError for a state unknown to Kafka, UnsendableError where a broker does not support
        such a filter.
        """
        _, cluster = await self.cluster.metadata(())
        request = listing.ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=longer_than_ms,
            transactional_id_pattern=pattern,
        )
        requested = (self._list_of(node.node_id, request) for node in cluster.brokers)
        return [one for found in await asyncio.gather(*requested) for one in found]

    async def _list_of(self, node_id: int, request: listing.ListTransactionsRequest) -> list[TransactionListing]:
        async with self.cluster.node(node_id) as connection:
            response = await connection.query(request, listing.ListTransactionsResponse)
            raise_refused(connection.server, [("transactions", response.error_code, None)], again=None)
        if response.unknown_state_filters:
            raise ClientError(f"unknown transaction state {', '.join(response.unknown_state_filters)}")
        return [
            TransactionListing(one.transactional_id, one.producer_id, one.transaction_state, node_id)
            for one in response.transaction_states
        ]

    async def describe_transactions(self, transactional_ids: Sequence[str]) -> dict[str, TransactionDescription]:
        """Return the states of transactional ids from their coordinators.

        Raises BrokerError (TRANSACTIONAL_ID_NOT_FOUND).
        """
        requested = (self._describe(one) for one in transactional_ids)
        found = await asyncio.gather(*requested, return_exceptions=True)
        raise_first(one for one in found if isinstance(one, BrokerError))
        described = {}
        for one in found:
            if isinstance(one, BaseException):
                raise one
            described[one.transactional_id] = one
        return described

    async def _describe(self, transactional_id: str) -> TransactionDescription:
        async def query(connection: Connection) -> tuple[tuple[Connection, describe.TransactionState], int]:
            request = describe.DescribeTransactionsRequest(transactional_ids=[transactional_id])
            response = await connection.query(request, describe.DescribeTransactionsResponse)
            (state,) = response.transaction_states
            return (connection, state), state.error_code

        connection, state = await self.cluster.query_coordinator(transactional_id, query, kind=TRANSACTION)
        raise_refused(connection.server, [(f"transactional id {transactional_id!r}", state.error_code, None)])
        began_ms = state.transaction_start_time_ms
        return TransactionDescription(
            transactional_id,
            self.cluster.node_at(connection.server),
            state.transaction_state,
            state.producer_id,
            state.producer_epoch,
            state.transaction_timeout_ms,
            None if began_ms < 0 else began_ms,
            tuple(TopicPartition(topic.topic, index) for topic in state.topics for index in topic.partitions),
        )

    @retried
    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker: int | None = None
    ) -> dict[TopicPartition, list[ProducerState]]:
        """Return the producer state of partitions, from their leaders or from the replicas of one `broker`.

        Raises BrokerError for the first partition that was rejected, with the errors of others as notes.
        """
        wanted = list(partitions)
        if broker is None:
            leaders = await find_leaders(self.cluster, wanted)
            raise_first(leaders.refused.values())
            by_node = leaders.by_node
        else:
            by_node = {broker: wanted}
        find = self.cluster.node if broker is None else self.cluster.broker
        found: dict[TopicPartition, list[ProducerState]] = {}
        for node_id, requested in by_node.items():
            async with find(node_id) as connection:
                found |= await self._producers_at(connection, requested)
        return {partition: found[partition] for partition in wanted}

    async def _producers_at(
        self, connection: Connection, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, list[ProducerState]]:
        topics: dict[str, list[int]] = {}
        for partition in partitions:
            topics.setdefault(partition.topic, []).append(partition.partition)
        request = producers.DescribeProducersRequest(
            topics=[producers.TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
        )
        response = await connection.query(request, producers.DescribeProducersResponse)
        flat = [(TopicPartition(t.name, p.partition_index), p) for t in response.topics for p in t.partitions]
        refusals = (
            partition_refusal(connection.server, partition, reported.error_code, reported.error_message)
            for partition, reported in flat
        )
        raise_first(refusal for refusal in refusals if refusal is not None)
        return {partition: [_producer(one) for one in reported.active_producers] for partition, reported in flat}

    @retried
    async def abort_transaction(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
    ) -> None:
        """Abort a hanging transaction in one partition: write an abort marker, without the transaction coordinator.

        `describe_producers` returns the three numbers. A `coordinator_epoch` below 0 stands for 0: the producer has
        no marker yet. Raises BrokerError.
        """
        leaders = await find_leaders(self.cluster, [partition])
        raise_first(leaders.refused.values())
        ((leader, _),) = leaders.by_node.items()
        marker = markers.WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=max(coordinator_epoch, 0),
            transaction_result=False,
            topics=[markers.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
        )
        async with self.cluster.node(leader) as connection:
            response = await connection.query(
                markers.WriteTxnMarkersRequest(markers=[marker]), markers.WriteTxnMarkersResponse
            )
            codes = [one.error_code for it in response.markers for topic in it.topics for one in topic.partitions]
            refusals = (partition_refusal(connection.server, partition, code) for code in codes)
            raise_first(refusal for refusal in refusals if refusal is not None)

    async def fence_producers(self, transactional_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Fence the producers of transactional ids. Returns the new producer id and epoch of each.

        An open transaction is aborted. Raises BrokerError.
        """
        requested = (self._fence(one) for one in transactional_ids)
        fenced = await asyncio.gather(*requested, return_exceptions=True)
        raise_first(one for one in fenced if isinstance(one, BrokerError))
        in_force = {}
        for transactional_id, one in zip(transactional_ids, fenced, strict=True):
            if isinstance(one, BaseException):
                raise one
            in_force[transactional_id] = one
        return in_force

    async def force_terminate_transaction(self, transactional_id: str) -> None:
        """Abort the open transaction of a transactional id, and fence its producer (KIP-939). Raises BrokerError."""
        await self.fence_producers([transactional_id])

    async def _fence(self, transactional_id: str) -> tuple[int, int]:
        async def query(connection: Connection) -> tuple[tuple[Connection, InitProducerIdResponse], int]:
            # No transaction uses the returned identity, so its timeout does not matter.
            request = InitProducerIdRequest(
                transactional_id=transactional_id, transaction_timeout_ms=self.cluster.settings.request_timeout_ms
            )
            response = await connection.query(request, InitProducerIdResponse)
            return (connection, response), response.error_code

        connection, response = await self.cluster.query_coordinator(
            transactional_id, query, again=_FENCES_AGAIN, kind=TRANSACTION
        )
        raise_refused(connection.server, [(f"transactional id {transactional_id!r}", response.error_code, None)])
        return response.producer_id, response.producer_epoch


def _producer(one: producers.ProducerState) -> ProducerState:
    return ProducerState(
        one.producer_id,
        one.producer_epoch,
        one.last_sequence,
        one.last_timestamp,
        one.coordinator_epoch,
        one.current_txn_start_offset,
    )
