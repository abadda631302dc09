"""The metadata record PartitionChangeRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, int8, int32, nullable, tag, uuid, versions


class PartitionChangeRecord(Message, api_key=5, kind="metadata", versions="0-2", flexible="0+"):
    """PartitionChangeRecord."""

    partition_id: Annotated[int, int32, versions("0+")] = -1
    topic_id: Annotated[bytes, uuid, versions("0+")] = ZERO_UUID
    isr: Annotated[list[int] | None, int32, versions("0+"), nullable("0+"), tag(0, "0+")] = None
    leader: Annotated[int, int32, versions("0+"), tag(1, "0+")] = -2
    replicas: Annotated[list[int] | None, int32, versions("0+"), nullable("0+"), tag(2, "0+")] = None
    removing_replicas: Annotated[list[int] | None, int32, versions("0+"), nullable("0+"), tag(3, "0+")] = None
    adding_replicas: Annotated[list[int] | None, int32, versions("0+"), nullable("0+"), tag(4, "0+")] = None
    leader_recovery_state: Annotated[int, int8, versions("0+"), tag(5, "0+")] = -1
    directories: Annotated[list[bytes] | None, uuid, versions("1+"), nullable("1+"), tag(8, "1+")] = None
    eligible_leader_replicas: Annotated[list[int] | None, int32, versions("2+"), nullable("2+"), tag(6, "2+")] = None
    last_known_elr: Annotated[list[int] | None, int32, versions("2+"), nullable("2+"), tag(7, "2+")] = None
