"""The metadata record PartitionRecord (3)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, about, int8, int32, nullable, tag, uuid, versions


class PartitionRecord(Message, api_key=3, kind="metadata", versions="0-2", flexible="0+"):
    """A partition and its complete state."""

    partition_id: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = -1
    topic_id: Annotated[bytes, uuid, versions("0+"), about("The topic's id.")] = ZERO_UUID
    replicas: Annotated[
        list[int], int32, versions("0+"), about("Brokers with a replica, the preferred leader first.")
    ] = []
    isr: Annotated[list[int], int32, versions("0+"), about("Brokers whose replica is in sync.")] = []
    removing_replicas: Annotated[
        list[int], int32, versions("0+"), about("Replicas that a reassignment takes away.")
    ] = []
    adding_replicas: Annotated[list[int], int32, versions("0+"), about("Replicas that a reassignment adds.")] = []
    leader: Annotated[int, int32, versions("0+"), about("Broker id of the leader; -1 for none.")] = -1
    leader_recovery_state: Annotated[
        int, int8, versions("0+"), tag(0, "0+"), about("1 while recovering from an unclean election.")
    ] = 0
    leader_epoch: Annotated[int, int32, versions("0+"), about("Grows with each change of the leader.")] = -1
    partition_epoch: Annotated[int, int32, versions("0+"), about("Grows with each change of the partition.")] = -1
    directories: Annotated[
        list[bytes], uuid, versions("1+"), about("Log directory of each replica, in the order of `replicas`.")
    ] = []
    eligible_leader_replicas: Annotated[
        list[int] | None,
        int32,
        versions("2+"),
        nullable("2+"),
        tag(1, "2+"),
        about("Replicas out of sync that may still lead without loss (KIP-966)."),
    ] = None
    last_known_elr: Annotated[
        list[int] | None,
        int32,
        versions("2+"),
        nullable("2+"),
        tag(2, "2+"),
        about("The last members of the ISR before it emptied (KIP-966)."),
    ] = None
