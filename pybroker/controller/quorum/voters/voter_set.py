"""The voters of the metadata quorum and their endpoints (KIP-853), as an immutable value.

Owns the keys of replicas in the Raft library, the conversion to and from Kafka's `VotersRecord`, and which single
changes are allowed: one voter more, one less, or other endpoints of one. Must not know logs or connections.

A replica is a node id and the id of its metadata log's directory: a node that has lost its disk returns as another
replica. If the configuration contains the voters (kraft.version 0), directory ids are zero and keys are node ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.controller.errors import MetadataLogError
from pybroker.protocol.messages.records.voters import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from pybroker.storage.log_dirs.meta_properties import id_text

if TYPE_CHECKING:
    from collections.abc import Iterable

KRAFT_VERSIONS = (0, 1)
"""The levels of kraft.version that this software supports."""
NO_DIRECTORY = bytes(16)
_DIRECTORY_BITS = 0x7FFFFFFF
_NODE_BITS = 32


def key_of(node_id: int, directory_id: bytes) -> int:
    """Return the key of a replica: the node id in the low 32 bits, and 31 bits of its directory id above, if any."""
    if directory_id == NO_DIRECTORY:
        return node_id
    return (int.from_bytes(directory_id[:4]) & _DIRECTORY_BITS or 1) << _NODE_BITS | node_id


def node_of(key: int) -> int:
    """Return the node id in a replica's key."""
    return key & _DIRECTORY_BITS


def shown_replica(node_id: int, directory_id: bytes) -> str:
    """Return a replica in the format of Kafka's messages."""
    directory = "<undefined>" if directory_id == NO_DIRECTORY else id_text(directory_id)
    return f"ReplicaKey(id={node_id}, directoryId={directory})"


class VoterEndpoint(NamedTuple):
    """A controller listener."""

    listener: str
    host: str
    port: int


class VoterNode(NamedTuple):
    """One voter."""

    node_id: int
    directory_id: bytes = NO_DIRECTORY
    endpoints: tuple[VoterEndpoint, ...] = ()
    kraft_versions: tuple[int, int] = (0, 0)
    """The minimum and the maximum level of kraft.version that it supports."""

    @property
    def key(self) -> int:
        """The key in the Raft library."""
        return key_of(self.node_id, self.directory_id)

    def endpoint(self, listener: str = "") -> VoterEndpoint | None:
        """Return the endpoint with this listener name, else the first one, None without endpoints."""
        found = [one for one in self.endpoints if one.listener == listener] or self.endpoints
        return found[0] if found else None

    def __str__(self) -> str:
        return shown_replica(self.node_id, self.directory_id)


class VoterSet(msgspec.Struct, frozen=True):
    """All voters, by ascending node id; each node id once."""

    voters: tuple[VoterNode, ...] = ()

    @classmethod
    def of(cls, voters: Iterable[VoterNode]) -> VoterSet:
        """Return the set of these voters."""
        return cls(tuple(sorted(voters, key=lambda voter: voter.node_id)))

    @classmethod
    def from_record(cls, record: VotersRecord) -> VoterSet:
        """Return the set in a record; raises `MetadataLogError` for an invalid set."""
        voters = [
            VoterNode(
                voter.voter_id,
                voter.voter_directory_id or NO_DIRECTORY,
                tuple(VoterEndpoint(one.name, one.host, one.port) for one in voter.endpoints),
                (
                    voter.kraft_version_feature.min_supported_version,
                    voter.kraft_version_feature.max_supported_version,
                ),
            )
            for voter in record.voters
        ]
        ids = [voter.node_id for voter in voters]
        if not voters or min(ids) < 0 or len(set(ids)) != len(ids):
            raise MetadataLogError(f"a VotersRecord names the voters {ids}: expected one or more, each once")
        return cls.of(voters)

    def to_record(self) -> VotersRecord:
        """Return Kafka's record of the set."""
        return VotersRecord(
            voters=[
                Voter(
                    voter_id=voter.node_id,
                    voter_directory_id=voter.directory_id,
                    endpoints=[Endpoint(name=one.listener, host=one.host, port=one.port) for one in voter.endpoints],
                    kraft_version_feature=KRaftVersionFeature(
                        min_supported_version=voter.kraft_versions[0], max_supported_version=voter.kraft_versions[1]
                    ),
                )
                for voter in self.voters
            ]
        )

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The node ids, ascending."""
        return tuple(voter.node_id for voter in self.voters)

    @property
    def keys(self) -> tuple[int, ...]:
        """The keys in the Raft library."""
        return tuple(voter.key for voter in self.voters)

    def find(self, node_id: int) -> VoterNode | None:
        """Return the voter with a node id, None if there is none."""
        return next((voter for voter in self.voters if voter.node_id == node_id), None)

    def has(self, key: int) -> bool:
        """Return whether the replica with this key is a voter."""
        return key in self.keys

    def with_voter(self, voter: VoterNode) -> VoterSet:
        """Return the set with one more voter, or with the voter of the same node id replaced."""
        return VoterSet.of([*(one for one in self.voters if one.node_id != voter.node_id), voter])

    def without(self, node_id: int) -> VoterSet:
        """Return the set without a voter."""
        return VoterSet(tuple(voter for voter in self.voters if voter.node_id != node_id))

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.voters))}]"
