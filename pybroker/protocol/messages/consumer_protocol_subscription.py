"""ConsumerProtocolSubscription: the subscription of a member of a classic group, sent in JoinGroup's metadata."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    ignorable,
    int32,
    map_key,
    nullable,
    octets,
    string,
    versions,
)


class TopicPartition(Struct):
    """Partitions of a topic that the member owns."""

    topic: Annotated[str, string, versions("1+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[list[int], int32, versions("1+"), about("Its partitions.")] = []


class ConsumerProtocolSubscription(Message, kind="data", versions="0-3", flexible="none"):
    """The subscribed topics and owned partitions of a member."""

    topics: Annotated[list[str], string, versions("0+"), about("Topics it wants.")] = []
    user_data: Annotated[
        bytes | None, octets, versions("0+"), nullable("0+"), about("What its assignor sends the leader's.")
    ] = None
    owned_partitions: Annotated[
        list[TopicPartition], versions("1+"), ignorable, about("Partitions it owns (KIP-429).")
    ] = []
    generation_id: Annotated[
        int, int32, versions("2+"), ignorable, about("The generation it owns them by; -1 where unknown.")
    ] = -1
    rack_id: Annotated[
        str | None, string, versions("3+"), nullable("3+"), ignorable, about("The member's rack (KIP-881).")
    ] = None
