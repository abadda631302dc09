"""Admin's calls about log directories: describe them, and move replicas between those of one broker.

Every broker is queried for its own directories. `AsyncAdmin` inherits the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pybroker.client.administration.log_dirs import LogDirDescription, Replica, ReplicaInfo
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import BrokerError
from pybroker.client.network.cluster import Cluster, partition_refusal, raise_refused, retried
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import alter_replica_log_dirs as alter
from pybroker.protocol.messages import describe_log_dirs as describe


class LogDirCalls:
    """The calls about log directories over one cluster."""

    cluster: Cluster

    @retried
    async def describe_log_dirs(self, brokers: Iterable[int]) -> dict[int, dict[str, LogDirDescription]]:
        """The log directories of brokers, by broker and path, with every replica in them. Raises BrokerError."""
        request = describe.DescribeLogDirsRequest(topics=None)
        described = {}
        for broker in brokers:
            async with self.cluster.broker(broker) as connection:
                response = await connection.query(request, describe.DescribeLogDirsResponse)
                raise_refused(connection.server, [("log directories", response.error_code, None)])
            described[broker] = {result.log_dir: _description(result) for result in response.results}
        return described

    @retried
    async def alter_replica_log_dirs(self, paths: Mapping[Replica, str]) -> dict[Replica, BrokerError | None]:
        """Start moves of replicas to other log directories of their brokers, by absolute path. None: started.

        `describe_log_dirs` returns the progress. A move to the directory of the current replica cancels a move in
        progress.
        """
        outcomes: dict[Replica, BrokerError | None] = {}
        for broker in sorted({replica.broker for replica in paths}):
            here = {replica.partition: path for replica, path in paths.items() if replica.broker == broker}
            async with self.cluster.broker(broker) as connection:
                response = await connection.query(_request(here), alter.AlterReplicaLogDirsResponse)
                for topic in response.results:
                    for result in topic.partitions:
                        partition = TopicPartition(topic.topic_name, result.partition_index)
                        refusal = partition_refusal(connection.server, partition, result.error_code)
                        outcomes[Replica(partition, broker)] = refusal
        return outcomes


def _description(result: describe.DescribeLogDirsResult) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, part.partition_index): ReplicaInfo(
            part.partition_size, part.offset_lag, part.is_future_key
        )
        for topic in result.topics
        for part in topic.partitions
    }
    return LogDirDescription(ErrorCode(result.error_code), replicas, result.total_bytes, result.usable_bytes)


def _request(paths: Mapping[TopicPartition, str]) -> alter.AlterReplicaLogDirsRequest:
    sorted_out: dict[str, dict[str, list[int]]] = {}
    for partition, path in paths.items():
        sorted_out.setdefault(path, {}).setdefault(partition.topic, []).append(partition.partition)
    return alter.AlterReplicaLogDirsRequest(
        dirs=[
            alter.AlterReplicaLogDir(
                path=path,
                topics=[alter.AlterReplicaLogDirTopic(name=name, partitions=own) for name, own in topics.items()],
            )
            for path, topics in sorted_out.items()
        ]
    )
