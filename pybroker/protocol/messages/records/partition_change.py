"""The metadata record PartitionChangeRecord (5)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, about, int8, int32, nullable, tag, uuid, versions


class PartitionChangeRecord(Message, api_key=5, kind="metadata", versions="0-2", flexible="0+"):
    """The changed fields of a partition's state."""

    partition_id: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = -1
    topic_id: Annotated[bytes, uuid, versions("0+"), about("The topic's id.")] = ZERO_UUID
    isr: Annotated[
        list[int] | None,
        int32,
        versions("0+"),
        nullable("0+"),
        tag(0, "0+"),
        about("The in-sync replicas; null as before."),
    ] = None
    leader: Annotated[int, int32, versions("0+"), tag(1, "0+"), about("The leader; -1 for none, -2 as before.")] = -2
    replicas: Annotated[
        list[int] | None, int32, versions("0+"), nullable("0+"), tag(2, "0+"), about("The replicas; null as before.")
    ] = None
    removing_replicas: Annotated[
        list[int] | None,
        int32,
        versions("0+"),
        nullable("0+"),
        tag(3, "0+"),
        about("Replicas being taken away; null as before."),
    ] = None
    adding_replicas: Annotated[
        list[int] | None,
        int32,
        versions("0+"),
        nullable("0+"),
        tag(4, "0+"),
        about("Replicas being added; null as before."),
    ] = None
    leader_recovery_state: Annotated[
        int, int8, versions("0+"), tag(5, "0+"), about("1 recovering from an unclean election, 0 not, -1 as before.")
    ] = -1
    directories: Annotated[
        list[bytes] | None,
        uuid,
        versions("1+"),
        nullable("1+"),
        tag(8, "1+"),
        about("Log directory of each replica; null as before."),
    ] = None
    eligible_leader_replicas: Annotated[
        list[int] | None,
        int32,
        versions("2+"),
        nullable("2+"),
        tag(6, "2+"),
        about("Replicas that may lead without loss (KIP-966); null as before."),
    ] = None
    last_known_elr: Annotated[
        list[int] | None,
        int32,
        versions("2+"),
        nullable("2+"),
        tag(7, "2+"),
        about("The last members of the ISR (KIP-966); null as before."),
    ] = None
