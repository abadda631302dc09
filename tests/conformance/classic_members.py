"""A member of a classic group, frame by frame, and the offsets that it or anybody commits.

Owns what the tests of classic groups and of offsets share; their fixtures are in `conftest.py`.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.wire import Wire

if TYPE_CHECKING:
    from tests.conformance.conftest import Server

OK = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
OFFSET_METADATA_TOO_LARGE = 12
ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
INVALID_GROUP_ID = 24
UNKNOWN_MEMBER_ID = 25
INVALID_SESSION_TIMEOUT = 26
REBALANCE_IN_PROGRESS = 27
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
MEMBER_ID_REQUIRED = 79
GROUP_MAX_SIZE_REACHED = 81
FENCED_INSTANCE_ID = 82
GROUP_SUBSCRIBED_TO_TOPIC = 86
UNKNOWN_TOPIC_ID = 100

NO_ID = uuid.UUID(int=0)
CONSUMER_METADATA = b"\0\0\0\0\0\1\0\5topic\xff\xff\xff\xff"
"""A subscription of version 0 to `topic`."""


@dataclass
class Member:
    """A member with a connection of its own, as its JoinGroup may wait."""

    server: Server
    group: str
    id: str = ""
    generation: int = -1
    instance: str | None = None
    protocols: dict[str, bytes] = field(default_factory=lambda: {"range": b"meta"})
    kind: str = "connect"
    session_ms: int = 10_000
    rebalance_ms: int = 30_000

    def __post_init__(self) -> None:
        self.wire = Wire(self.server.bootstrap_servers)
        self._requested: Any = None

    def begin_join(self, version: int = 9) -> None:
        self._requested = self.join_request(version)
        self._correlation = self.wire.send(self._requested)

    def end_join(self) -> Any:
        response = self.wire.receive(self._requested, self._correlation)
        if response.error_code == OK:
            self.id, self.generation = response.member_id, response.generation_id
        return response

    def join(self, version: int = 9) -> Any:
        self.begin_join(version)
        response = self.end_join()
        if response.error_code == MEMBER_ID_REQUIRED:
            self.id = response.member_id
            self.begin_join(version)
            response = self.end_join()
        return response

    def join_request(self, version: int) -> Any:
        from tests.support.wire import request

        known = {"group_instance_id": self.instance} if version >= 5 else {}
        return request(
            "JoinGroup",
            version,
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            **({"rebalance_timeout_ms": self.rebalance_ms} if version >= 1 else {}),
            member_id=self.id,
            **known,
            protocol_type=self.kind,
            protocols=[{"name": name, "metadata": metadata} for name, metadata in self.protocols.items()],
        )

    def sync(self, version: int = 5, **assignments: bytes) -> Any:
        return self.wire.query(self.sync_request(version, **assignments))

    def sync_request(self, version: int = 5, **assignments: bytes) -> Any:
        from tests.support.wire import request

        known = {"group_instance_id": self.instance} if version >= 3 else {}
        if version >= 5:
            known |= {"protocol_type": self.kind, "protocol_name": next(iter(self.protocols))}
        return request(
            "SyncGroup",
            version,
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            **known,
            assignments=[{"member_id": name, "assignment": share} for name, share in assignments.items()],
        )

    def sync_alone(self, version: int = 5) -> Any:
        return self.sync(version, **{self.id: b"all"})

    def beat(self, version: int = 4, *, generation: int | None = None) -> int:
        known = {"group_instance_id": self.instance} if version >= 3 else {}
        generation = self.generation if generation is None else generation
        response = self.wire.call(
            "Heartbeat", version, group_id=self.group, generation_id=generation, member_id=self.id, **known
        )
        return int(response.error_code)

    def leave(self, version: int = 5) -> Any:
        if version < 3:
            return self.wire.call("LeaveGroup", version, group_id=self.group, member_id=self.id)
        who = {"member_id": self.id, "group_instance_id": self.instance}
        return self.wire.call("LeaveGroup", version, group_id=self.group, members=[who])

    def commit(self, topic: str, offset: int = 5, *, generation: int | None = None, version: int = 8) -> int:
        generation = self.generation if generation is None else generation
        return commit(self.wire, self.group, topic, offset, member=self.id, generation=generation, version=version)


def commit(
    wire: Wire,
    group: str,
    topic: str,
    offset: int = 5,
    *,
    partition: int = 0,
    member: str = "",
    generation: int = -1,
    version: int = 8,
    metadata: str = "",
    topic_id: Any = NO_ID,
) -> int:
    """Commit one offset; the partition's error."""
    named = {"topic_id": topic_id} if version >= 10 else {"name": topic}
    kept = {"committed_leader_epoch": 3} if version >= 6 else {}
    response = wire.call(
        "OffsetCommit",
        version,
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        **({"retention_time_ms": -1} if version <= 4 else {}),
        topics=[
            {
                **named,
                "partitions": [
                    {"partition_index": partition, "committed_offset": offset, "committed_metadata": metadata, **kept}
                ],
            }
        ],
    )
    return int(response.topics[0].partitions[0].error_code)


def committed(wire: Wire, group: str, topic: str, *, version: int = 8, topic_id: Any = NO_ID) -> tuple[int, str, int]:
    """Offset, metadata and error of partition 0."""
    if version >= 8:
        named = {"topic_id": topic_id} if version >= 10 else {"name": topic}
        wanted: dict[str, Any] = {"group_id": group, "topics": [{**named, "partition_indexes": [0]}]}
        if version >= 9:
            wanted |= {"member_id": None, "member_epoch": -1}
        response = wire.call("OffsetFetch", version, groups=[wanted], require_stable=False).groups[0]
        assert response.error_code == OK
    else:
        stable = {"require_stable": False} if version >= 7 else {}
        response = wire.call(
            "OffsetFetch", version, group_id=group, topics=[{"name": topic, "partition_indexes": [0]}], **stable
        )
    part = response.topics[0].partitions[0]
    return part.committed_offset, part.metadata, part.error_code
