"""DescribeQuorum: returns the voters, leader and high watermark of the metadata quorum (KIP-595, KIP-836).

Key
    55

Versions
    0-2

Behaviour
    - For only partition 0 of __cluster_metadata: the voters and the observers, each with its log end offset, the time
      of its last message, and the time when it last was caught up with the leader. For the leader, both are the current
      time, as in Kafka. NOT_CONTROLLER if this node is not the leader.
    - UNKNOWN_TOPIC_OR_PARTITION for each partition of any other request.
    - The voters' directory ids are zero if controller.quorum.voters defines the voters (kraft.version 0), as in Kafka.
    - Controllers that are not voters are observers, like brokers.
    - The voters are returned as nodes with their controller listeners; a single node, which has none, with the listener
      of the request.

Version notes
    - Times: version 1 and later. Error messages, directory ids and nodes: version 2 and later.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.registry import handles
from pybroker.handlers.topic_metadata import broker_addresses
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.describe_quorum import (
    DescribedPartitionData,
    DescribedTopicData,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.controller.channel import QuorumReplica, QuorumState
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError

_METADATA = "__cluster_metadata"
_FIRST_VERSION_WITH_NODES = 2
_NOT_HERE = "This server does not host this topic-partition."


def _failed(_request: DescribeQuorumRequest, _version: int, error: WireError) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error.code, error_message=error.message)


@handles(
    DescribeQuorumRequest,
    requires=[of_request(Operation.DESCRIBE, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
def describe_quorum(request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    """Describe the quorum."""
    requested = [(topic.topic_name, part.partition_index) for topic in request.topics for part in topic.partitions]
    if len(request.topics) != 1 or requested != [(_METADATA, 0)]:
        return DescribeQuorumResponse(topics=_unknown(request))
    quorum = context.services.controller.own().quorum_state()
    partition = DescribedPartitionData(
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[_state(replica) for replica in quorum.voters],
        observers=[_state(replica) for replica in quorum.observers],
    )
    return DescribeQuorumResponse(
        topics=[DescribedTopicData(topic_name=_METADATA, partitions=[partition])],
        nodes=_nodes(quorum, context) if context.version >= _FIRST_VERSION_WITH_NODES else [],
    )


def _state(replica: QuorumReplica) -> ReplicaState:
    return ReplicaState(
        replica_id=replica.node_id,
        replica_directory_id=replica.directory_id,
        log_end_offset=replica.log_end_offset,
        last_fetch_timestamp=replica.last_fetch_ms,
        last_caught_up_timestamp=replica.last_caught_up_ms,
    )


def _unknown(request: DescribeQuorumRequest) -> list[DescribedTopicData]:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return [
        DescribedTopicData(
            topic_name=topic.topic_name,
            partitions=[
                DescribedPartitionData(
                    partition_index=partition.partition_index, error_code=unknown, error_message=_NOT_HERE
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]


def _nodes(quorum: QuorumState, context: RequestContext) -> list[Node]:
    names = context.services.config.controller_listener_names
    if not names:
        return _single_node(quorum.leader_id, context)
    return [
        Node(
            node_id=node_id,
            listeners=[
                Listener(name=one.listener or names[0].upper(), host=one.host, port=one.port) for one in endpoints
            ],
        )
        for node_id, endpoints in quorum.endpoints.items()
    ]


def _single_node(leader_id: int, context: RequestContext) -> list[Node]:
    listener = context.listener
    return [
        Node(node_id=leader_id, listeners=[Listener(name=listener, host=broker.host, port=broker.port)])
        for broker in broker_addresses(context)
        if broker.node_id == leader_id
    ]
