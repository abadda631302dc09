"""ConsumerGroupPartitionMetadata (4) of `__consumer_offsets`: the metadata of a group's topics, up to Kafka 4.0."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    int32,
    string,
    uuid,
    versions,
)


class ConsumerGroupPartitionMetadataKey(Message, api_key=4, kind="coordinator-key", versions="0", flexible="none"):
    """The group."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""


class PartitionMetadata(Struct):
    """A partition and its racks."""

    partition: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    racks: Annotated[list[str], string, versions("0+"), about("Where its replicas are.")] = []


class TopicMetadata(Struct):
    """A topic and its partitions."""

    topic_id: Annotated[bytes, uuid, versions("0+"), about("The topic's id.")] = ZERO_UUID
    topic_name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    num_partitions: Annotated[int, int32, versions("0+"), about("How many partitions it has.")] = 0
    partition_metadata: Annotated[
        list[PartitionMetadata], versions("0+"), about("Racks of its partitions; empty where none is known.")
    ] = []


class ConsumerGroupPartitionMetadataValue(Message, api_key=4, kind="coordinator-value", versions="0", flexible="0+"):
    """The topics. Read but never written: the hash in ConsumerGroupMetadata replaces this record (KIP-1101)."""

    topics: Annotated[list[TopicMetadata], versions("0+"), about("The topics.")] = []
