"""ConsumerProtocolAssignment: the assignment of a member of a classic group, sent by its leader in SyncGroup."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int32, map_key, nullable, octets, string, versions


class TopicPartition(Struct):
    """Partitions of a topic assigned to the member."""

    topic: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("Its partitions.")] = []


class ConsumerProtocolAssignment(Message, kind="data", versions="0-3", flexible="none"):
    """The assignment of a member."""

    assigned_partitions: Annotated[list[TopicPartition], versions("0+"), about("The partitions.")] = []
    user_data: Annotated[
        bytes | None, octets, versions("0+"), nullable("0+"), about("What the leader's assignor sends the member's.")
    ] = None
