"""Admin over asyncio: topics, cluster, configurations and offsets of any Kafka.

Owns the choice of the node that each request is sent to. Errors name the server that responded and the topic or
resource. The calls of each subject are in a module of their own: `acl_admin`, `cluster_admin`, `config_admin`,
`group_admin`, `log_dir_admin`, `quota_admin`, `reassignment_admin`, `replica_admin`, `token_admin`,
`transaction_admin` and `user_admin` of `pybroker.client.administration`. `pybroker.client.administration.admin` is
the same for blocking code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from msgspec.structs import replace

from pybroker.client.administration.acl_admin import AclCalls
from pybroker.client.administration.cluster_admin import ClusterCalls
from pybroker.client.administration.config_admin import ConfigCalls
from pybroker.client.administration.log_dir_admin import LogDirCalls
from pybroker.client.administration.quota_admin import QuotaCalls
from pybroker.client.administration.reassignment_admin import ReassignmentCalls
from pybroker.client.administration.replica_admin import ReplicaCalls
from pybroker.client.administration.streams_group_admin import StreamsGroupCalls
from pybroker.client.administration.token_admin import TokenCalls
from pybroker.client.administration.topics import (
    CreatedTopic,
    ListedOffset,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicPartition,
)
from pybroker.client.administration.transaction_admin import TransactionCalls
from pybroker.client.administration.user_admin import UserCalls
from pybroker.client.arguments import check_arguments
from pybroker.client.closing import AsyncClosing
from pybroker.client.errors import BrokerError, ClientError, UnservedApiError
from pybroker.client.network.cluster import ANY, Cluster, raise_first, raise_refused, retried
from pybroker.client.network.leaders import find_leaders, find_newer_leaders
from pybroker.client.network.retry_budget import Backoff, is_retriable
from pybroker.client.network.retrying import retry
from pybroker.client.settings import AdminSettings
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import create_topics as create
from pybroker.protocol.messages import delete_topics as delete
from pybroker.protocol.messages import describe_topic_partitions as pages
from pybroker.protocol.messages import list_offsets as offsets
from pybroker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from pybroker.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

_OFTEN = Backoff(10, 10)
"""Election of a leader takes milliseconds, so the wait for one retries more often than a failed call."""


@check_arguments
class AsyncAdmin(
    AclCalls,
    ClusterCalls,
    ConfigCalls,
    StreamsGroupCalls,
    LogDirCalls,
    QuotaCalls,
    ReassignmentCalls,
    ReplicaCalls,
    TokenCalls,
    TransactionCalls,
    UserCalls,
    AsyncClosing,
):
    """`async with AsyncAdmin("127.0.0.1:9092") as admin: await admin.list_topics()`."""

    def __init__(self, bootstrap_servers: str | None = None, properties: Mapping[str, object] | None = None) -> None:
        """Connect to brokers, or without `bootstrap_servers` to the controllers of bootstrap.controllers."""
        defaults = {"client.id": "pybroker-admin"}
        settings = AdminSettings.of_client(bootstrap_servers or "", properties, defaults)
        self.cluster = Cluster(settings, uses_controllers=bool(settings.bootstrap_controllers))

    @classmethod
    def over(cls, cluster: Cluster) -> Self:
        """Return an admin that uses the connections of another client. The other client closes them."""
        admin = cls.__new__(cls)
        admin.cluster = cluster
        return admin

    async def close(self) -> None:
        """Close every connection."""
        await self.cluster.close()

    @retried
    async def create_topics(
        self, topics: Sequence[NewTopic | str], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[CreatedTopic]:
        """Create topics. Returns when each has a leader or the broker's timeout (request.timeout.ms) is over.

        A request whose connection ended before the response arrived is sent again, as by Kafka's AdminClient. The
        second response may be TOPIC_ALREADY_EXISTS for a topic that the first request created.

        Raises BrokerError for the first topic that was rejected, with the errors of other topics as notes. The
        topics that were not rejected are created.
        """
        wanted = [NewTopic(topic) if isinstance(topic, str) else topic for topic in topics]
        request = create.CreateTopicsRequest(
            topics=[_creatable(topic) for topic in wanted],
            timeout_ms=self.cluster.server_timeout_ms(timeout_ms),
            validate_only=validate_only,
        )
        async with self.cluster.controller() as connection:
            response = await connection.query(request, create.CreateTopicsResponse)
            raise_refused(
                connection.server, ((f"topic {r.name!r}", r.error_code, r.error_message) for r in response.topics)
            )
        return [CreatedTopic(r.name, r.topic_id, r.num_partitions, r.replication_factor) for r in response.topics]

    @retried
    async def delete_topics(self, names: Sequence[str], *, timeout_ms: int | None = None) -> None:
        """Delete topics by name.

        Raises BrokerError for the first that was rejected, with the errors of others as notes.
        """
        states = [delete.DeleteTopicState(name=name) for name in names]
        request = delete.DeleteTopicsRequest(
            topics=states, topic_names=list(names), timeout_ms=self.cluster.server_timeout_ms(timeout_ms)
        )
        async with self.cluster.controller() as connection:
            if connection.version_of(request) >= delete.FIRST_VERSION_WITH_TOPIC_IDS:
                request.topic_names = []
            else:
                request.topics = []
            response = await connection.query(request, delete.DeleteTopicsResponse)
            refusals = ((f"topic {r.name!r}", r.error_code, r.error_message) for r in response.responses)
            raise_refused(connection.server, refusals)

    @retried
    async def list_topics(self, *, internal: bool = False) -> list[str]:
        """Return the names of all topics, sorted; internal topics (`__consumer_offsets` ...) only with `internal`."""
        _, response = await self.cluster.metadata(None)
        return sorted(t.name or "" for t in response.topics if internal or not t.is_internal)

    @retried
    async def describe_topics(
        self, names: Sequence[str], *, partitions_per_response: int | None = None
    ) -> list[TopicDescription]:
        """Return partitions, leaders and replicas of topics, in the order of `names`. Raises BrokerError (unknown
        topic).

        With `partitions_per_response`, requests to a broker of 3.7 or later are limited to that many partitions each.
        The result then includes the eligible leader replicas (KIP-966).
        """
        if partitions_per_response is not None and names:
            described = await self._describe_in_pages(names, partitions_per_response)
            if described is not None:
                return [described[name] for name in names]
        server, response = await self.cluster.metadata(names)
        by_name = {topic.name: topic for topic in response.topics}
        raise_refused(server, ((f"topic {t.name!r}", t.error_code, None) for t in response.topics))
        return [_describe(by_name[name]) for name in names]

    async def _describe_in_pages(self, names: Sequence[str], size: int) -> dict[str, TopicDescription] | None:
        """Describe topics by DescribeTopicPartitions; None where the broker does not serve it."""
        request = pages.DescribeTopicPartitionsRequest(
            topics=[pages.TopicRequest(name=name) for name in dict.fromkeys(names)], response_partition_limit=size
        )
        found: dict[str, TopicDescription] = {}
        async with self.cluster.node(ANY) as connection:
            while True:
                try:
                    response = await connection.query(request, pages.DescribeTopicPartitionsResponse)
                except UnservedApiError:
                    return None
                raise_refused(connection.server, ((f"topic {t.name!r}", t.error_code, None) for t in response.topics))
                for topic in map(_describe, response.topics):
                    before = found.get(topic.name)
                    found[topic.name] = topic if before is None else _joined(before, topic)
                if response.next_cursor is None:
                    return found
                request.cursor = response.next_cursor

    @retried
    async def new_producer_id(self) -> tuple[int, int]:
        """Allocate a new producer id and epoch: the start of a `Continuation`. Raises BrokerError."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        async with self.cluster.node(ANY) as connection:
            response = await connection.query(request, InitProducerIdResponse)
            raise_refused(connection.server, [("producer id", response.error_code, None)], again=None)
        return response.producer_id, response.producer_epoch

    @retried
    async def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False, confirmed: bool = False
    ) -> dict[TopicPartition, ListedOffset]:
        """Return the first offset at or after a timestamp (ms, `EARLIEST`, `LATEST` or `MAX_TIMESTAMP`).

        Returns an offset for each partition. With `read_committed` the latest is the last stable offset. With
        `confirmed` a leader's latest offsets do not count if another broker knows a newer leader. Raises BrokerError
        for the first partition that was rejected.
        """
        leaders = await find_leaders(self.cluster, wanted)
        raise_first(leaders.refused.values())
        found: dict[TopicPartition, ListedOffset] = {}
        while leaders.by_node:
            for leader, partitions in leaders.by_node.items():
                found |= await self._list_offsets_of(leader, {p: wanted[p] for p in partitions}, read_committed)
            if not confirmed:
                break
            epochs = {partition: listed.leader_epoch for partition, listed in found.items()}
            leaders = await find_newer_leaders(self.cluster, epochs, leaders)
        return found

    async def _list_offsets_of(
        self, leader: int, wanted: Mapping[TopicPartition, int], read_committed: bool
    ) -> dict[TopicPartition, ListedOffset]:
        topics: dict[str, list[offsets.ListOffsetsPartition]] = {}
        for partition, timestamp in wanted.items():
            requested = offsets.ListOffsetsPartition(partition_index=partition.partition, timestamp=timestamp)
            topics.setdefault(partition.topic, []).append(requested)
        request = offsets.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(read_committed),
            topics=[offsets.ListOffsetsTopic(name=name, partitions=requested) for name, requested in topics.items()],
        )
        async with self.cluster.node(leader) as connection:
            response = await connection.query(request, offsets.ListOffsetsResponse)
            flat = [(t.name, p) for t in response.topics for p in t.partitions]
            refusals = ((f"topic {name!r} partition {p.partition_index}", p.error_code, None) for name, p in flat)
            raise_refused(connection.server, refusals, again=None)
        return {
            TopicPartition(name, p.partition_index): ListedOffset(p.offset, p.timestamp, p.leader_epoch)
            for name, p in flat
        }


async def wait_for_leaders(admin: AsyncAdmin, name: str, timeout_s: float = 30) -> TopicDescription:
    """Poll until every partition of a topic has a leader. Raises the last error when the timeout is over."""

    async def attempt() -> TopicDescription:
        (topic,) = await admin.describe_topics([name])
        for partition in topic.partitions:
            if partition.leader < 0:
                what = f"topic {name!r} partition {partition.index}"
                raise BrokerError.of("the cluster", what, ErrorCode.LEADER_NOT_AVAILABLE, None)
        return topic

    def passes(failure: ClientError) -> bool:
        return isinstance(failure, BrokerError) or is_retriable(failure)

    timeout_ms = round(timeout_s * 1000)
    return await retry(admin.cluster.settings, attempt, timeout_ms=timeout_ms, again=passes, backoff=_OFTEN)


def _creatable(topic: NewTopic) -> create.CreatableTopic:
    return create.CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            create.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.assignments.items()
        ],
        configs=[create.CreatableTopicConfig(name=name, value=str(value)) for name, value in topic.configs.items()],
    )


def _describe(topic: MetadataResponseTopic | pages.DescribeTopicPartitionsResponseTopic) -> TopicDescription:
    described: Iterable[MetadataResponsePartition | pages.DescribeTopicPartitionsResponsePartition] = topic.partitions
    partitions = tuple(_describe_partition(p) for p in sorted(described, key=lambda p: p.partition_index))
    return TopicDescription(topic.name or "", topic.topic_id, topic.is_internal, partitions)


def _describe_partition(
    partition: MetadataResponsePartition | pages.DescribeTopicPartitionsResponsePartition,
) -> PartitionDescription:
    now = last = None
    if not isinstance(partition, MetadataResponsePartition):
        now, last = partition.eligible_leader_replicas, partition.last_known_elr
    return PartitionDescription(
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
        None if now is None else tuple(now),
        None if last is None else tuple(last),
    )


def _joined(first: TopicDescription, rest: TopicDescription) -> TopicDescription:
    return replace(first, partitions=first.partitions + rest.partitions)
