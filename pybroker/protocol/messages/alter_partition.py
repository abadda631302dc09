"""AlterPartition (56): a partition leader requests the controller to change the in-sync replicas."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    ignorable,
    int8,
    int16,
    int32,
    int64,
    uuid,
    versions,
)


class BrokerState(Struct):
    """An in-sync replica and the epoch of its broker."""

    broker_id: Annotated[int, int32, versions("3+"), about("The broker's id.")] = 0
    broker_epoch: Annotated[
        int, int64, versions("3+"), about("The broker's epoch, -1 where it is not to be compared.")
    ] = -1


class PartitionData(Struct):
    """A partition and the state that its leader proposes."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    leader_epoch: Annotated[int, int32, versions("0+"), about("The leader epoch in which the leader asks.")] = 0
    new_isr: Annotated[list[int], int32, versions("0-2"), about("Ids of the replicas that are to be in sync.")] = []
    new_isr_with_epochs: Annotated[
        list[BrokerState], versions("3+"), about("The replicas that are to be in sync, with their brokers' epochs.")
    ] = []
    leader_recovery_state: Annotated[
        int, int8, versions("1+"), about("1 while the leader recovers from an unclean election, else 0.")
    ] = 0
    partition_epoch: Annotated[int, int32, versions("0+"), about("The partition epoch that the leader knows.")] = 0


class TopicData(Struct):
    """A topic and its partitions."""

    topic_id: Annotated[bytes, uuid, versions("2+"), ignorable, about("The topic's id.")] = bytes(16)
    partitions: Annotated[list[PartitionData], versions("0+"), about("Its partitions.")] = []


class AlterPartitionRequest(Message, api_key=56, kind="request", versions="2-3", flexible="0+"):
    """Requests the controller to change in-sync replicas (KIP-497, KIP-704, KIP-841, KIP-903)."""

    broker_id: Annotated[int, int32, versions("0+"), about("Id of the broker that asks.")] = 0
    broker_epoch: Annotated[int, int64, versions("0+"), about("Its broker epoch.")] = -1
    topics: Annotated[list[TopicData], versions("0+"), about("The topics to change.")] = []


class AlteredPartitionData(Struct):
    """The state of one partition after the change, or an error."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    leader_id: Annotated[int, int32, versions("0+"), about("The leader's id.")] = 0
    leader_epoch: Annotated[int, int32, versions("0+"), about("The leader epoch.")] = 0
    isr: Annotated[list[int], int32, versions("0+"), about("Ids of the in-sync replicas.")] = []
    leader_recovery_state: Annotated[
        int, int8, versions("1+"), ignorable, about("1 while the leader recovers from an unclean election, else 0.")
    ] = 0
    partition_epoch: Annotated[int, int32, versions("0+"), about("The partition epoch.")] = 0


class AlteredTopicData(Struct):
    """The result for each partition of a topic."""

    topic_id: Annotated[bytes, uuid, versions("2+"), ignorable, about("The topic's id.")] = bytes(16)
    partitions: Annotated[list[AlteredPartitionData], versions("0+"), about("Its partitions.")] = []


class AlterPartitionResponse(Message, api_key=56, kind="response", versions="2-3", flexible="0+"):
    """The result for each partition."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    topics: Annotated[list[AlteredTopicData], versions("0+"), about("What became of each topic.")] = []
