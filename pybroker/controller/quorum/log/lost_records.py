"""Checks whether other files of the only voter prove that its metadata log was longer.

Owns the proofs: a snapshot, an epoch, an acknowledged record or a change of voters beyond the log's end, and partitions
of unknown topics. Also owns the file by which an operator accepts the loss. Must not open the log, and changes no other
file. A voter among several is not checked here: it fetches missing records from the leader (`losses`).
"""

from __future__ import annotations

import logging
import re
import struct
from typing import TYPE_CHECKING, NamedTuple

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.log.epoch_checkpoint import EPOCHS_NAME, read_last_epoch
from pybroker.controller.quorum.log.hard_state import FILE_NAME, read_hard_state
from pybroker.controller.quorum.log.log_position import POSITION_NAME, read_position
from pybroker.controller.quorum.native import parse_metadata_batches
from pybroker.controller.quorum.snapshot.snapshots import newest_snapshot, read_values
from pybroker.controller.quorum.voters.control_records import read_voters
from pybroker.controller.quorum.voters.voter_set import NO_DIRECTORY, VoterNode, VoterSet, key_of
from pybroker.protocol.errors import ProtocolError
from pybroker.protocol.messages.records.frame import decode_record
from pybroker.protocol.messages.records.remove_topic import RemoveTopicRecord
from pybroker.protocol.messages.records.topic import TopicRecord
from pybroker.storage.log_dirs.meta_properties import id_text
from pybroker.storage.log_dirs.partition_directory import PARTITION_METADATA, topic_of
from pybroker.storage.native import read_topic_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pybroker.controller.quorum.snapshot.snapshots import SnapshotFile

log = logging.getLogger("pybroker.controller")

ACCEPT_LOSS = "accept-loss"
"""An empty file of this name in the metadata log's directory makes the next start continue without lost records."""

_SEGMENT = re.compile(r"\d{20}\.log")
_PREFIX = struct.Struct(">qi")
"""Base offset, and length of the rest: the start of a batch."""
_SMALLEST_LENGTH = 49
_ATTRIBUTES = slice(21, 23)
_LAST_OFFSET_DELTA = slice(23, 27)
_IS_CONTROL = 0x20
_OF_TOPICS = frozenset({TopicRecord.__message__.api_key, RemoveTopicRecord.__message__.api_key})
"""Types of the records that contain a topic id, for its creation and its deletion; each is one byte of a frame."""
_SHOWN = 3


class Replica(NamedTuple):
    """A replica of the metadata log, from the configuration and `meta.properties`."""

    node_id: int
    directory_id: bytes = NO_DIRECTORY
    voters: Sequence[int] = ()
    """Node ids of the voters in the configuration; empty if the log contains the voter set."""


def check_nothing_lost(directory: Path, end_offset: int, replica: Replica, partitions: Sequence[Path]) -> None:
    """Raise `MetadataLogError` if the only voter's log was longer than `end_offset`; raises `OSError` too.

    `partitions` are the node's partition directories. A loss that the operator has accepted is logged.
    """
    snapshot = newest_snapshot(directory)
    if not _is_only_voter(directory, end_offset, replica, snapshot):
        return
    proof = (
        _beyond_the_end(directory, end_offset, snapshot)
        or _unknown_topics(directory, end_offset, snapshot, partitions)
        or _acknowledged(directory, end_offset)
    )
    if proof is None:
        return
    segment = max(_segments(directory), default=directory)
    lost = f"metadata log {directory} lost records: {segment.name} ends at offset {end_offset}, {proof}"
    accepted = directory / ACCEPT_LOSS
    if accepted.exists():
        log.warning("%s. Continuing without the lost records: %s exists", lost, accepted)
        return
    raise MetadataLogError(
        f"{lost}. The node does not start, as it would rename the partitions of lost topics to -stray and assign "
        "producer ids twice: restore the directory from a backup. To start without the lost records instead, create "
        f"the empty file {accepted}: partitions that are renamed are kept"
    )


def clear_acceptance(directory: Path) -> None:
    """Remove the file by which an operator accepted a loss, after the start that used it; a failure is logged."""
    try:
        (directory / ACCEPT_LOSS).unlink(missing_ok=True)
    except OSError as error:
        log.warning("Failed to remove %s, which would hide another loss: %s", directory / ACCEPT_LOSS, error)


def _is_only_voter(directory: Path, end_offset: int, replica: Replica, snapshot: SnapshotFile | None) -> bool:
    """Return whether the replica is the whole quorum, according to the last voter set in snapshot and log."""
    voters = VoterSet.of(VoterNode(node_id) for node_id in replica.voters)
    if snapshot is not None and snapshot.voters is not None:
        voters = VoterSet.from_record(snapshot.voters)
    for raw in _batches(directory, end_offset):
        if int.from_bytes(raw[_ATTRIBUTES]) & _IS_CONTROL:
            voters = read_voters(raw) or voters
    return voters.keys in ((replica.node_id,), (key_of(replica.node_id, replica.directory_id),))


def _beyond_the_end(directory: Path, end_offset: int, snapshot: SnapshotFile | None) -> str | None:
    """Return the proof that a file of the metadata log's directory is beyond the log's end, None without a proof."""
    if snapshot is not None and snapshot.end_offset > end_offset:
        return f"and the snapshot {snapshot.path.name} ends at offset {snapshot.end_offset}"
    # The only voter writes the file before a batch of a new epoch, and syncs a batch before the next one.
    epoch, start_offset = read_last_epoch(directory)
    if start_offset > end_offset:
        return f"and epoch {epoch} begins at offset {start_offset} in {EPOCHS_NAME}"
    state = read_hard_state(directory)
    if state is not None and state.voters_offset > end_offset:
        return f"and {FILE_NAME} has a change of voters that ends at offset {state.voters_offset}"
    return None


def _acknowledged(directory: Path, end_offset: int) -> str | None:
    """Return the proof that the node had acknowledged records beyond the log's end, if any. It names no topics."""
    acknowledged = read_position(directory.parent).end_offset
    return None if acknowledged <= end_offset else f"and {POSITION_NAME} has acknowledged offset {acknowledged - 1}"


def _unknown_topics(
    directory: Path, end_offset: int, snapshot: SnapshotFile | None, partitions: Sequence[Path]
) -> str | None:
    """Return the topics of partitions that no record created or deleted; None if there are none.

    The log reaches the newest snapshot. So a lost record is younger than the snapshot, and so is its partition. Older
    partitions may belong to topics that were deleted while their directory was offline, and whose records are removed.
    """
    young = partitions
    if snapshot is not None and snapshot.end_offset > 0:
        young = [path for path in partitions if _written_ms(path / PARTITION_METADATA) > snapshot.timestamp_ms]
    if not young:
        return None
    ids = read_topic_ids([str(path) for path in young])
    unknown = {topic_id: path for path, topic_id in zip(young, ids, strict=True) if isinstance(topic_id, bytes)}
    try:
        for raw in _batches(directory, end_offset):
            [(_, _, _, _, is_control, values)], _ = parse_metadata_batches(raw)
            if not is_control:
                _forget_known(unknown, values)
        if unknown and snapshot is not None:
            for values in read_values(snapshot.path):
                _forget_known(unknown, values)
    except ProtocolError as error:
        raise MetadataLogError(f"a record of the metadata log {directory} cannot be read: {error}") from error
    if not unknown:
        return None
    shown = [f"{topic_of(path.name)} (topic id {id_text(one)}, {path})" for one, path in unknown.items()]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"without a record of {', '.join(shown[:_SHOWN])}{more}"


def _forget_known(unknown: dict[bytes, Path], values: Iterable[bytes]) -> None:
    """Remove from `unknown` the topics of these records; raises `ProtocolError`."""
    for value in values:
        if len(value) > 1 and value[1] in _OF_TOPICS:
            record = decode_record(value)
            if isinstance(record, TopicRecord | RemoveTopicRecord):
                unknown.pop(record.topic_id, None)


def _written_ms(path: Path) -> float:
    """Return when a file was written, in ms since 1970; -1 if it cannot be read."""
    try:
        return path.stat().st_mtime * 1000
    except OSError:
        return -1


def _batches(directory: Path, end_offset: int) -> Iterator[bytes]:
    """Return the whole batches of a log that was verified up to `end_offset`; raises `OSError`."""
    expected = 0
    for path in _segments(directory):
        with path.open("rb") as file:
            while len(prefix := file.read(_PREFIX.size)) == _PREFIX.size:
                base_offset, length = _PREFIX.unpack(prefix)
                if not expected <= base_offset < end_offset or length < _SMALLEST_LENGTH:
                    return  # an incomplete write
                raw = prefix + file.read(length)
                expected = base_offset + int.from_bytes(raw[_LAST_OFFSET_DELTA]) + 1
                yield raw


def _segments(directory: Path) -> list[Path]:
    """Return the segments of a log, oldest first; raises `OSError`."""
    return sorted(path for path in directory.iterdir() if _SEGMENT.fullmatch(path.name))
