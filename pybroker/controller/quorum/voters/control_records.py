"""The control records of the metadata log with the voter set and the level of kraft.version (KIP-853).

Owns encoding and decoding of their batch. Must not know how voters change.
"""

from __future__ import annotations

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.log.metadata_log import split
from pybroker.controller.quorum.native import build_control_batch, changes_voters, parse_control_batch
from pybroker.controller.quorum.snapshot.snapshot_header import KRAFT_VERSION, KRAFT_VOTERS
from pybroker.controller.quorum.voters.voter_set import VoterSet
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ProtocolError
from pybroker.protocol.messages.records.kraft_version import KRaftVersionRecord
from pybroker.protocol.messages.records.voters import VotersRecord

DYNAMIC = 1
"""The level of kraft.version with voter sets in the log."""


def build_voters(voters: VoterSet, now_ms: int, *, is_first: bool) -> bytes:
    """Return the batch with a voter set; the first one of a log also contains the level of kraft.version."""
    head = [(KRAFT_VERSION, encode(KRaftVersionRecord(kraft_version=DYNAMIC), 0))] if is_first else []
    return build_control_batch([*head, (KRAFT_VOTERS, encode(voters.to_record(), 0))], now_ms)


def read_kraft_version(payload: bytes) -> int | None:
    """Return the level of kraft.version in a batch, None for any other batch; raises `MetadataLogError`."""
    if not changes_voters(payload):
        return None
    try:
        found = [
            decode(KRaftVersionRecord, value, 0)[0].kraft_version
            for kind, value in parse_control_batch(payload)
            if kind == KRAFT_VERSION
        ]
    except ProtocolError as error:
        raise MetadataLogError(f"a KRaftVersionRecord of the metadata log cannot be read: {error}") from error
    return found[-1] if found else None


def kraft_versions(batches: bytes) -> dict[int, int]:
    """Return the levels of kraft.version in whole batches, by a batch's last offset.

    Raises `MetadataLogError`.
    """
    levels = ((batch.last_offset, read_kraft_version(batch.payload)) for batch in split(batches) if batch.is_control)
    return {offset: level for offset, level in levels if level is not None}


def read_voters(payload: bytes) -> VoterSet | None:
    """Return the voter set in a batch, None for any other batch; raises `MetadataLogError`."""
    if not changes_voters(payload):
        return None
    try:
        found = [
            decode(VotersRecord, value, 0)[0] for kind, value in parse_control_batch(payload) if kind == KRAFT_VOTERS
        ]
    except ProtocolError as error:
        raise MetadataLogError(f"a VotersRecord of the metadata log cannot be read: {error}") from error
    return VoterSet.from_record(found[-1])
