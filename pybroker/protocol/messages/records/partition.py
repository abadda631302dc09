"""The metadata record PartitionRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, int8, int32, nullable, tag, uuid, versions


class PartitionRecord(Message, api_key=3, kind="metadata", versions="0-2", flexible="0+"):
    """PartitionRecord."""

    partition_id: Annotated[int, int32, versions("0+")] = -1
    topic_id: Annotated[bytes, uuid, versions("0+")] = ZERO_UUID
    replicas: Annotated[list[int], int32, versions("0+")] = []
    isr: Annotated[list[int], int32, versions("0+")] = []
    removing_replicas: Annotated[list[int], int32, versions("0+")] = []
    adding_replicas: Annotated[list[int], int32, versions("0+")] = []
    leader: Annotated[int, int32, versions("0+")] = -1
    leader_recovery_state: Annotated[int, int8, versions("0+"), tag(0, "0+")] = 0
    leader_epoch: Annotated[int, int32, versions("0+")] = -1
    partition_epoch: Annotated[int, int32, versions("0+")] = -1
    directories: Annotated[list[bytes], uuid, versions("1+")] = []
    eligible_leader_replicas: Annotated[list[int] | None, int32, versions("2+"), nullable("2+"), tag(1, "2+")] = None
    last_known_elr: Annotated[list[int] | None, int32, versions("2+"), nullable("2+"), tag(2, "2+")] = None
