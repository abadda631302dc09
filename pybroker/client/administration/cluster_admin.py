"""Admin's calls about the whole cluster: nodes, controller quorum and features.

An admin of controllers sends them to the active controller. Any broker forwards them. `AsyncAdmin` inherits the
calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from pybroker.client.administration.quorum import FeatureUpdate, QuorumDescription, QuorumReplica, RaftEndpoint
from pybroker.client.administration.topics import BrokerDescription, ClusterDescription, FeatureDescription
from pybroker.client.errors import BrokerError, ClientError, UnservedApiError
from pybroker.client.network.cluster import ANY, NOT_CONTROLLER, Cluster, raise_refused, retried
from pybroker.client.network.connection import Connection
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import add_raft_voter as add
from pybroker.protocol.messages import describe_cluster as nodes
from pybroker.protocol.messages import describe_quorum as quorum
from pybroker.protocol.messages import remove_raft_voter as remove
from pybroker.protocol.messages import unregister_broker as unregister
from pybroker.protocol.messages import update_features as features

METADATA_TOPIC = "__cluster_metadata"
_LAST_VERSION_WITHOUT_FENCED = 1
_UNSAFE = 3
_QUORUM = "the metadata quorum"
_MOVED = (NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)
"""The controller is not active any more: the client finds the active one again."""


class ClusterCalls:
    """The calls about the cluster."""

    cluster: Cluster

    @retried
    async def describe_cluster(self, *, include_fenced: bool = False) -> ClusterDescription:
        """Return the cluster id, the controller and the brokers, or controllers from an admin of controllers.

        With `include_fenced` the result includes fenced brokers. Raises UnservedApiError where the cluster, older
        than Kafka 4.0, does not return them.
        """
        if not include_fenced and not self.cluster.uses_controllers:
            _, response = await self.cluster.metadata(())
            brokers = tuple(BrokerDescription(b.node_id, b.host, b.port, b.rack) for b in response.brokers)
            return ClusterDescription(response.cluster_id, response.controller_id, brokers)
        if include_fenced and self.cluster.uses_controllers:
            raise ClientError("include_fenced=True needs brokers: this admin client is connected to controllers")
        async with self.cluster.node(ANY) as connection:
            described = await self._describe_nodes(connection, include_fenced=include_fenced)
        return ClusterDescription(
            described.cluster_id,
            described.controller_id,
            tuple(BrokerDescription(b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in described.brokers),
        )

    async def _describe_nodes(self, connection: Connection, *, include_fenced: bool) -> nodes.DescribeClusterResponse:
        request = nodes.DescribeClusterRequest(
            endpoint_type=self.cluster.endpoint_type, include_fenced_brokers=include_fenced
        )
        version = connection.version_of(request)
        if include_fenced and version <= _LAST_VERSION_WITHOUT_FENCED:
            raise UnservedApiError(f"Including fenced broker endpoints is not supported with version {version}")
        response = await connection.query(request, nodes.DescribeClusterResponse)
        raise_refused(connection.server, [("the cluster", response.error_code, response.error_message)])
        return response

    @retried
    async def describe_features(self) -> dict[str, FeatureDescription]:
        """Return the features of the cluster by name (KIP-584): the finalized and the supported levels."""
        async with self.cluster.node(ANY) as connection:
            await connection.learn_versions()
            return connection.features

    @retried
    async def describe_api_versions(self, broker: int) -> dict[int, tuple[int, int]]:
        """Return the lowest and highest version of each API that one broker serves, by API key."""
        async with self.cluster.node(broker) as connection:
            await connection.learn_versions()
            return dict(connection.served)

    @retried
    async def update_features(
        self, updates: Mapping[str, FeatureUpdate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> dict[str, BrokerError | None]:
        """Change the levels of features, all or none. Returns the error of each feature, None where it was accepted.

        With `validate_only` nothing changes.
        """
        request = features.UpdateFeaturesRequest(
            timeout_ms=self.cluster.server_timeout_ms(timeout_ms),
            feature_updates=[
                features.FeatureUpdateKey(
                    feature=name,
                    max_version_level=update.level,
                    allow_downgrade=update.upgrade_type >= _UNSAFE,
                    upgrade_type=update.upgrade_type,
                )
                for name, update in updates.items()
            ],
            validate_only=validate_only,
        )
        async with self.cluster.controller() as connection:
            response = await connection.query(request, features.UpdateFeaturesResponse)
            if response.error_code == NOT_CONTROLLER:
                raise_refused(connection.server, [("features", response.error_code, response.error_message)])
        results = {result.feature: (result.error_code, result.error_message) for result in response.results}
        if response.error_code:
            results = dict.fromkeys(updates, (response.error_code, response.error_message))
        refusals: dict[str, BrokerError | None] = {}
        for name in updates:
            code, message = results.get(name, (0, None))
            what = f"feature {name!r}"
            refusals[name] = BrokerError.of(connection.server, what, code, message) if code else None
        return refusals

    @retried
    async def describe_quorum(self) -> QuorumDescription:
        """Return the voters and observers of the metadata log, and the log end offset of each (KIP-595).

        Raises BrokerError.
        """
        partition = quorum.PartitionData(partition_index=0)
        request = quorum.DescribeQuorumRequest(
            topics=[quorum.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
        )
        async with self._active() as connection:
            response = await connection.query(request, quorum.DescribeQuorumResponse)
            raise_refused(connection.server, [(_QUORUM, response.error_code, response.error_message)], again=_MOVED)
            described = [part for topic in response.topics for part in topic.partitions]
            if len(described) != 1:
                raise ClientError(f"{connection.server} described {len(described)} quorums, expected 1")
            (state,) = described
            raise_refused(connection.server, [(_QUORUM, state.error_code, state.error_message)], again=_MOVED)
        return QuorumDescription(
            state.leader_id,
            state.leader_epoch,
            state.high_watermark,
            tuple(map(_replica, state.current_voters)),
            tuple(map(_replica, state.observers)),
            {
                node.node_id: tuple(RaftEndpoint(at.name, at.host, at.port) for at in node.listeners)
                for node in response.nodes
            },
        )

    @retried
    async def add_raft_voter(
        self,
        node_id: int,
        directory_id: bytes,
        endpoints: Sequence[RaftEndpoint],
        *,
        cluster_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Add a controller as a voter of the metadata log (KIP-853). Returns when the change is committed.

        `directory_id` is the id of the controller's metadata log directory, `endpoints` are its addresses for the
        other voters. A cluster whose id differs from `cluster_id` rejects the request. Raises BrokerError.
        """
        request = add.AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=self.cluster.server_timeout_ms(timeout_ms),
            voter_id=node_id,
            voter_directory_id=directory_id,
            listeners=[add.Listener(name=at.listener, host=at.host, port=at.port) for at in endpoints],
        )
        async with self._active() as connection:
            response = await connection.query(request, add.AddRaftVoterResponse)
            raise_refused(
                connection.server, [(f"voter {node_id}", response.error_code, response.error_message)], again=_MOVED
            )

    @retried
    async def remove_raft_voter(self, node_id: int, directory_id: bytes, *, cluster_id: str | None = None) -> None:
        """Remove a voter, given by its node id and the id of its metadata log directory (KIP-853).

        Raises BrokerError.
        """
        request = remove.RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=node_id, voter_directory_id=directory_id
        )
        async with self._active() as connection:
            response = await connection.query(request, remove.RemoveRaftVoterResponse)
            raise_refused(
                connection.server, [(f"voter {node_id}", response.error_code, response.error_message)], again=_MOVED
            )

    @retried
    async def unregister_broker(self, node_id: int) -> None:
        """Remove the registration of a broker that will not return (KIP-631). Raises BrokerError."""
        request = unregister.UnregisterBrokerRequest(broker_id=node_id)
        async with self._active() as connection:
            response = await connection.query(request, unregister.UnregisterBrokerResponse)
            raise_refused(
                connection.server, [(f"broker {node_id}", response.error_code, response.error_message)], again=_MOVED
            )

    def _active(self) -> AbstractAsyncContextManager[Connection]:
        """Return a connection to a node that serves requests about the quorum: any broker, or the active controller."""
        return self.cluster.controller() if self.cluster.uses_controllers else self.cluster.node(ANY)


def _replica(state: quorum.ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        state.replica_directory_id,
        state.log_end_offset,
        _time(state.last_fetch_timestamp),
        _time(state.last_caught_up_timestamp),
    )


def _time(milliseconds: int) -> int | None:
    return None if milliseconds < 0 else milliseconds
