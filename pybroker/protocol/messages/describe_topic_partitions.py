"""DescribeTopicPartitions (75): describes topics in pages, for clusters with very many partitions."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    boolean,
    ignorable,
    int16,
    int32,
    map_key,
    nullable,
    string,
    uuid,
    versions,
)


class TopicRequest(Struct):
    """A requested topic."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""


class Cursor(Struct):
    """The partition at which the next page begins."""

    topic_name: Annotated[str, string, versions("0+"), about("The next topic.")] = ""
    partition_index: Annotated[int, int32, versions("0+"), about("The next partition in it.")] = 0


class DescribeTopicPartitionsRequest(Message, api_key=75, kind="request", versions="0", flexible="0+"):
    """Requests one page of topics and their partitions (KIP-966)."""

    topics: Annotated[list[TopicRequest], versions("0+"), about("The topics asked about; empty for all.")] = []
    response_partition_limit: Annotated[int, int32, versions("0+"), about("Most partitions in one answer.")] = 2000
    cursor: Annotated[Cursor | None, versions("0+"), nullable("0+"), about("Where an earlier answer stopped.")] = None


class DescribeTopicPartitionsResponsePartition(Struct):
    """A partition, its leader and its replicas."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    leader_id: Annotated[int, int32, versions("0+"), about("Broker id of the leader; -1 where there is none.")] = 0
    leader_epoch: Annotated[int, int32, versions("0+"), ignorable, about("Epoch of that leadership.")] = -1
    replica_nodes: Annotated[
        list[int], int32, versions("0+"), about("Brokers with a replica, the preferred leader first.")
    ] = []
    isr_nodes: Annotated[list[int], int32, versions("0+"), about("Brokers whose replica is in sync.")] = []
    eligible_leader_replicas: Annotated[
        list[int] | None,
        int32,
        versions("0+"),
        nullable("0+"),
        about("Replicas out of sync that may still lead without loss (KIP-966)."),
    ] = None
    last_known_elr: Annotated[
        list[int] | None,
        int32,
        versions("0+"),
        nullable("0+"),
        about("The last members of the ISR before it emptied (KIP-966)."),
    ] = None
    offline_replicas: Annotated[
        list[int], int32, versions("0+"), ignorable, about("Brokers whose replica is offline.")
    ] = []


class DescribeTopicPartitionsResponseTopic(Struct):
    """A requested topic."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    name: Annotated[str | None, string, versions("0+"), nullable("0+"), map_key, about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("0+"), ignorable, about("The topic's id.")] = ZERO_UUID
    is_internal: Annotated[
        bool, boolean, versions("0+"), ignorable, about("Whether the brokers use the topic for themselves.")
    ] = False
    partitions: Annotated[list[DescribeTopicPartitionsResponsePartition], versions("0+"), about("Its partitions.")] = []
    topic_authorized_operations: Annotated[
        int, int32, versions("0+"), about("A bit for each operation allowed; the lowest number where not asked.")
    ] = -2147483648


class DescribeTopicPartitionsResponse(Message, api_key=75, kind="response", versions="0", flexible="0+"):
    """One page of topics and their partitions."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    topics: Annotated[list[DescribeTopicPartitionsResponseTopic], versions("0+"), about("What was found.")] = []
    next_cursor: Annotated[Cursor | None, versions("0+"), nullable("0+"), about("Where to go on; null at the end.")] = (
        None
    )
