"""Admin's calls about configs of topics, brokers and groups, new partitions, leader elections, and record deletion.

Owns the choice of the node: a broker for its own configs, a leader for its records, the controller for all others.
`AsyncAdmin` inherits the calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from pybroker.client.administration.topics import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    TOPIC,
    ConfigChange,
    ConfigEntry,
    ConfigSynonym,
    MorePartitions,
    TopicPartition,
)
from pybroker.client.consuming.group_offsets import by_topic
from pybroker.client.errors import BrokerError
from pybroker.client.network.cluster import Cluster, partition_refusal, raise_first, raise_refused, retried
from pybroker.client.network.connection import Connection
from pybroker.client.network.leaders import find_leaders
from pybroker.client.network.retry_budget import is_retriable
from pybroker.client.network.retrying import retry
from pybroker.protocol.messages import create_partitions as create
from pybroker.protocol.messages import delete_records as delete
from pybroker.protocol.messages import describe_configs as describe
from pybroker.protocol.messages import elect_leaders as election
from pybroker.protocol.messages import incremental_alter_configs as alter
from pybroker.protocol.messages import list_config_resources as listing

FIRST_VERSION_WITH_TYPES = 1
"""The version with ListConfigResources (KIP-1142). Lower versions are ListClientMetricsResources, of one type only."""


class ConfigCalls:
    """The calls about configs, partitions and records of one cluster."""

    cluster: Cluster

    @retried
    async def describe_configs(
        self, name: str, resource_type: int = TOPIC, *, synonyms: bool = False
    ) -> dict[str, ConfigEntry]:
        """Return the settings of a resource by name. Raises BrokerError.

        The resource is a topic, a group (`GROUP`), a client metrics subscription (`CLIENT_METRICS`) or the node with
        that id (`BROKER`). `BROKER` without a name returns the dynamic cluster-wide configs; `BROKER_LOGGER` returns
        the log levels of a node.
        """
        resource = describe.DescribeConfigsResource(
            resource_type=resource_type, resource_name=name, configuration_keys=None
        )
        request = describe.DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms)
        async with self._config_node(name, resource_type) as connection:
            response = await connection.query(request, describe.DescribeConfigsResponse)
            results = (
                (f"configuration of {r.resource_name!r}", r.error_code, r.error_message) for r in response.results
            )
            raise_refused(connection.server, results)
        return {entry.name: _entry(entry) for result in response.results for entry in result.configs}

    @retried
    async def alter_configs(
        self, name: str, changes: Sequence[ConfigChange], resource_type: int = TOPIC, *, validate_only: bool = False
    ) -> None:
        """Change settings of a resource, all or none; `BROKER` without a name changes them for all nodes.

        Raises BrokerError.
        """
        resource = alter.AlterConfigsResource(
            resource_type=resource_type,
            resource_name=name,
            configs=[
                alter.AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
                for change in changes
            ],
        )
        request = alter.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        async with self._config_node(name, resource_type) as connection:
            response = await connection.query(request, alter.IncrementalAlterConfigsResponse)
            results = (
                (f"configuration of {r.resource_name!r}", r.error_code, r.error_message) for r in response.responses
            )
            raise_refused(connection.server, results)

    @retried
    async def list_config_resources(self, resource_type: int) -> list[str]:
        """Return the names of resources of one type; groups without configs of their own are omitted."""
        request = listing.ListConfigResourcesRequest(resource_types=[resource_type])
        async with self.cluster.controller() as connection:
            if resource_type == CLIENT_METRICS and connection.version_of(request) < FIRST_VERSION_WITH_TYPES:
                request.resource_types = []
            response = await connection.query(request, listing.ListConfigResourcesResponse)
            raise_refused(connection.server, [("configurations", response.error_code, None)], again=None)
        return [resource.resource_name for resource in response.config_resources]

    @retried
    async def create_partitions(
        self, topics: Mapping[str, MorePartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> None:
        """Increase the partition count of topics. Raises BrokerError for the first topic that was rejected."""
        requested = [
            create.CreatePartitionsTopic(name=name, count=more.total, assignments=_assignments(more))
            for name, more in topics.items()
        ]
        request = create.CreatePartitionsRequest(
            topics=requested, timeout_ms=self.cluster.server_timeout_ms(timeout_ms), validate_only=validate_only
        )
        async with self.cluster.controller() as connection:
            response = await connection.query(request, create.CreatePartitionsResponse)
            results = ((f"topic {r.name!r}", r.error_code, r.error_message) for r in response.results)
            raise_refused(connection.server, results)

    @retried
    async def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None, *, unclean: bool = False, timeout_ms: int | None = None
    ) -> dict[TopicPartition, BrokerError | None]:
        """Elect the preferred leader of partitions (None: all), or with `unclean` any leader where they have none.

        Returns the error of each partition, None where a leader was elected. With None, partitions whose leader
        needs no change are omitted. Raises BrokerError where the whole request was rejected.
        """
        grouped = by_topic(partitions or ())
        topics = [election.TopicPartitions(topic=name, partitions=indexes) for name, indexes in grouped.items()]
        request = election.ElectLeadersRequest(
            election_type=int(unclean),
            topic_partitions=None if partitions is None else topics,
            timeout_ms=self.cluster.server_timeout_ms(timeout_ms),
        )
        async with self.cluster.controller() as connection:
            response = await connection.query(request, election.ElectLeadersResponse)
            raise_refused(connection.server, [("leader election", response.error_code, None)])
        results = {
            TopicPartition(topic.topic, result.partition_id): result
            for topic in response.replica_election_results
            for result in topic.partition_result
        }
        return {
            partition: partition_refusal(connection.server, partition, result.error_code, result.error_message)
            for partition, result in results.items()
        }

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int | BrokerError]:
        """Delete the records below an offset of each partition; `HIGH_WATERMARK` stands for all committed records.

        Returns for each partition the new log start offset, or the error. An error of one partition does not affect
        the others.
        """
        outcomes: dict[TopicPartition, int | BrokerError] = {}

        async def attempt() -> None:
            waiting = [partition for partition in offsets if _may_change(outcomes.get(partition))]
            leaders = await find_leaders(self.cluster, waiting)
            outcomes.update(leaders.refused)
            for leader, partitions in leaders.by_node.items():
                wanted = {partition: offsets[partition] for partition in partitions}
                outcomes.update(await self._delete_records_of(leader, wanted))
            refused = (outcome for outcome in outcomes.values() if isinstance(outcome, BrokerError))
            raise_first(refusal for refusal in refused if is_retriable(refusal))

        with contextlib.suppress(BrokerError):  # the outcomes include the error
            await retry(self.cluster.settings, attempt, timeout_ms=timeout_ms)
        return outcomes

    async def _delete_records_of(
        self, leader: int, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | BrokerError]:
        request = delete.DeleteRecordsRequest(
            topics=_deletions(offsets), timeout_ms=self.cluster.server_timeout_ms(None)
        )
        async with self.cluster.node(leader) as connection:
            response = await connection.query(request, delete.DeleteRecordsResponse)
            results = {
                TopicPartition(t.name, result.partition_index): result
                for t in response.topics
                for result in t.partitions
            }
            return {
                partition: _low_watermark(connection.server, partition, result) for partition, result in results.items()
            }

    @contextlib.asynccontextmanager
    async def _config_node(self, name: str, resource_type: int) -> AsyncIterator[Connection]:
        """Return a connection to the node with a resource's configs: the broker for its own, else the controller.

        With controllers as bootstrap servers, the active controller has the configs of all nodes.
        """
        if resource_type in (BROKER, BROKER_LOGGER) and name and not self.cluster.uses_controllers:
            async with self.cluster.broker(int(name)) as connection:
                yield connection
        else:
            async with self.cluster.controller() as connection:
                yield connection


def _entry(entry: describe.DescribeConfigsResourceResult) -> ConfigEntry:
    synonyms = (ConfigSynonym(one.name, one.value, one.source) for one in entry.synonyms)
    return ConfigEntry(
        entry.name, entry.value, entry.read_only, entry.config_source, entry.is_sensitive, tuple(synonyms)
    )


def _assignments(more: MorePartitions) -> list[create.CreatePartitionsAssignment] | None:
    if more.assignments is None:
        return None
    return [create.CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in more.assignments]


def _deletions(offsets: Mapping[TopicPartition, int]) -> list[delete.DeleteRecordsTopic]:
    return [
        delete.DeleteRecordsTopic(
            name=name,
            partitions=[
                delete.DeleteRecordsPartition(partition_index=index, offset=offsets[TopicPartition(name, index)])
                for index in indexes
            ],
        )
        for name, indexes in by_topic(offsets).items()
    ]


def _may_change(outcome: int | BrokerError | None) -> bool:
    return outcome is None or (isinstance(outcome, BrokerError) and is_retriable(outcome))


def _low_watermark(
    server: str, partition: TopicPartition, result: delete.DeleteRecordsPartitionResult
) -> int | BrokerError:
    return partition_refusal(server, partition, result.error_code) or result.low_watermark
