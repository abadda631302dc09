"""Admin's calls that start, cancel and list partition reassignments (KIP-455).

Requests are sent to the controller. `AsyncAdmin` inherits the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pybroker.client.administration.topics import Reassignment, TopicPartition
from pybroker.client.consuming.group_offsets import by_topic
from pybroker.client.errors import BrokerError
from pybroker.client.network.cluster import Cluster, partition_refusal, raise_refused, retried
from pybroker.protocol.messages import alter_partition_reassignments as alter
from pybroker.protocol.messages import list_partition_reassignments as listing


class ReassignmentCalls:
    """The calls about reassignments over one cluster."""

    cluster: Cluster

    @retried
    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, BrokerError | None]:
        """Assign other replicas to partitions, the preferred leader first; None cancels a reassignment in progress.

        Returns the error of each partition, None where the reassignment has started; `list_partition_reassignments`
        shows its progress. With `allow_replication_factor_change=False` a change of the number of replicas is
        rejected (KIP-860). Raises BrokerError where the whole request was rejected.
        """
        request = alter.AlterPartitionReassignmentsRequest(
            timeout_ms=self.cluster.server_timeout_ms(timeout_ms),
            allow_replication_factor_change=allow_replication_factor_change,
            topics=[
                alter.ReassignableTopic(
                    name=name,
                    partitions=[
                        alter.ReassignablePartition(
                            partition_index=index, replicas=_listed(targets[TopicPartition(name, index)])
                        )
                        for index in indexes
                    ],
                )
                for name, indexes in by_topic(targets).items()
            ],
        )
        async with self.cluster.controller() as connection:
            response = await connection.query(request, alter.AlterPartitionReassignmentsResponse)
            raise_refused(connection.server, [("reassignments", response.error_code, response.error_message)])
        results = {
            TopicPartition(topic.name, result.partition_index): result
            for topic in response.responses
            for result in topic.partitions
        }
        return {
            partition: partition_refusal(connection.server, partition, result.error_code, result.error_message)
            for partition, result in results.items()
        }

    @retried
    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Return the reassignments in progress of these partitions, None for all. Raises BrokerError."""
        topics = [
            listing.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(partitions or ()).items()
        ]
        request = listing.ListPartitionReassignmentsRequest(
            timeout_ms=self.cluster.server_timeout_ms(timeout_ms), topics=None if partitions is None else topics
        )
        async with self.cluster.controller() as connection:
            response = await connection.query(request, listing.ListPartitionReassignmentsResponse)
            raise_refused(connection.server, [("reassignments", response.error_code, response.error_message)])
        return {
            TopicPartition(topic.name, part.partition_index): Reassignment(
                tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
            )
            for topic in response.topics
            for part in topic.partitions
        }


def _listed(replicas: Sequence[int] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)
