"""Snapshots of the metadata log: an image in a file of Kafka's format, which replaces the log up to an offset.

Owns the name of the file (`<end offset>-<epoch>.checkpoint`), its batches (header, records in the order of
`image_records`, footer), the order write, sync, rename, and the validation on reading. Must not know when a snapshot is
due (`snapshot_policy`) nor which log it belongs to.

A file with its final name is complete: before, its name ends in `.part`. Reading validates the file to the last byte,
and raises an error with the name of a damaged file. Encoding yields one batch at a time, of a millisecond or two, so
that an event loop can run other tasks in between.
"""

from __future__ import annotations

import os
import re
import struct
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import Batch
from pybroker.controller.quorum.native import (
    build_control_batch,
    build_record_batch,
    parse_control_batch,
    parse_metadata_batches,
)
from pybroker.controller.quorum.snapshot.snapshot_header import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    UNKNOWN,
    SnapshotHeader,
)
from pybroker.metadata.errors import MetadataError
from pybroker.metadata.features import RECORD_VERSIONS
from pybroker.metadata.image_records import feature_records, state_records
from pybroker.metadata.loader import Loader
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ProtocolError
from pybroker.protocol.messages.records.frame import decode_record, encode_record
from pybroker.protocol.messages.records.kraft_version import KRaftVersionRecord
from pybroker.protocol.messages.records.snapshot_footer import SnapshotFooterRecord
from pybroker.protocol.messages.records.voters import VotersRecord
from pybroker.storage.log_dirs.atomic_file import sync_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.schema import Message

SUFFIX = ".checkpoint"
PART_SUFFIX = ".part"
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")

_RECORDS_PER_BATCH = 200
_BYTES_PER_BATCH = 256 << 10
_PREFIX = struct.Struct(">qii")
"""Base offset, length of the rest, leader epoch: the start of a batch."""
_LENGTH_COUNTS_FROM = 12
_SMALLEST_BATCH = 61


class SnapshotId(NamedTuple):
    """The end of a snapshot: it contains the log before `end_offset`, whose last record has this `epoch`."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """Kafka's file name."""
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


class SnapshotFile(NamedTuple):
    """A snapshot on disk, and the contents of its header."""

    path: Path
    end_offset: int
    epoch: int
    raft_index: int
    """Raft index of the last entry in the snapshot; -1 if the writer did not know it."""
    timestamp_ms: int
    """Append time of the last record in the snapshot."""
    features_epoch: int
    voters: VotersRecord | None
    """The voter set, if the log contains it (kraft.version 1) and the writer is a voter."""
    kraft_version: int
    size: int

    @property
    def id(self) -> SnapshotId:
        """The id of the snapshot."""
        return SnapshotId(self.end_offset, self.epoch)


class SnapshotWriter:
    """Writes one snapshot, a chunk at a time; after an error, or without `finish`, no file is left."""

    def __init__(self, path: Path) -> None:
        """Create the file; raises `OSError`."""
        self._path = path
        self._part = path.with_name(path.name + PART_SUFFIX)
        self._file: BinaryIO | None = self._part.open("wb")
        self.size = 0
        """Bytes written so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def write(self, chunk: bytes) -> None:
        """Append bytes; raises `OSError`."""
        self.size += self._open_file().write(chunk)

    def check(self, epoch: int) -> None:
        """Read the written bytes back, and validate them; raises `OSError` and `MetadataLogError`."""
        self._open_file().flush()
        for _ in read_values(self._part, epoch=epoch):
            pass

    def finish(self) -> Path:
        """Sync the file, and give it its final name; raises `OSError`."""
        file = self._open_file()
        file.flush()
        os.fdatasync(file.fileno())
        file.close()
        self._part.replace(self._path)
        self._file = None
        sync_directory(self._path.parent)
        return self._path

    def abandon(self) -> None:
        """Remove the file, unless it is finished."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._part.unlink(missing_ok=True)

    def _open_file(self) -> BinaryIO:
        if self._file is None:
            raise ValueError(f"{self._path} is finished or abandoned")
        return self._file


def write_snapshot(
    directory: Path,
    image: MetadataImage,
    end_offset: int,
    epoch: int,
    raft_index: int,
    now_ms: int,
    *,
    voters: VotersRecord | None = None,
) -> SnapshotId:
    """Write an image as the snapshot of the log before `end_offset`, in one call and durably; raises `OSError`."""
    snapshot = SnapshotId(end_offset, epoch)
    chunks = encode_snapshot(image, snapshot, raft_index, now_ms, voters=voters)
    write_file(directory / snapshot.file_name, chunks)
    return snapshot


def write_file(path: Path, chunks: Iterable[bytes]) -> Path:
    """Write a whole file in the format of a snapshot, durably; raises `OSError`."""
    with SnapshotWriter(path) as writer:
        for chunk in chunks:
            writer.write(chunk)
        return writer.finish()


def encode_snapshot(
    image: MetadataImage, snapshot: SnapshotId, raft_index: int, now_ms: int, *, voters: VotersRecord | None = None
) -> Iterator[bytes]:
    """Encode an image batch by batch: the content of the file.

    `raft_index` is -1 if it is unknown. The feature levels are a batch of their own, the first.
    """
    header = SnapshotHeader(
        last_contained_log_timestamp=now_ms, raft_index=raft_index, features_epoch=image.features.epoch
    )
    batches = chain(_cut(feature_records(image.features)), _cut(state_records(image)))
    # An observer knows the level, but not the voter set.
    is_dynamic = image.features.kraft_version > 0
    yield from _encode_batches(header, voters, batches, snapshot.epoch, now_ms, is_dynamic=is_dynamic)


def encode_records(
    records: Iterable[Message], epoch: int, now_ms: int, *, voters: VotersRecord | None = None
) -> Iterator[bytes]:
    """Encode records unchanged: the content of a file that a new cluster starts with."""
    header = SnapshotHeader(last_contained_log_timestamp=now_ms)
    yield from _encode_batches(header, voters, _cut(iter(records)), epoch, now_ms)


def list_snapshots(directory: Path) -> list[SnapshotId]:
    """Return the snapshots in a directory by their names, oldest first; empty if the directory does not exist."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    found = (_NAME.fullmatch(name) for name in names)
    return sorted(SnapshotId(int(match[1]), int(match[2])) for match in found if match)


def remove_parts(directory: Path) -> None:
    """Remove the incomplete snapshots that a crash left; raises `OSError`."""
    for path in directory.glob(f"*{SUFFIX}{PART_SUFFIX}"):
        path.unlink(missing_ok=True)


def newest_snapshot(directory: Path) -> SnapshotFile | None:
    """Open the newest snapshot, None if there is none; raises `OSError` and `MetadataLogError`."""
    snapshots = list_snapshots(directory)
    return open_snapshot(directory / snapshots[-1].file_name) if snapshots else None


def open_snapshot(path: Path) -> SnapshotFile:
    """Read name and header of a snapshot; raises `OSError` and `MetadataLogError`."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise MetadataLogError(f"{path}: expected a snapshot named <end offset, 20 digits>-<epoch, 10 digits>{SUFFIX}")
    snapshot = SnapshotId(int(match[1]), int(match[2]))
    with path.open("rb") as file:
        head = next(_raw_batches(file, path), None)
        size = os.fstat(file.fileno()).st_size
    if head is None:
        raise _damaged(path, "it is empty")
    header, voters, kraft_version = _parse_head(head, path)
    return SnapshotFile(
        path,
        *snapshot,
        raft_index=header.raft_index,
        timestamp_ms=header.last_contained_log_timestamp,
        features_epoch=header.features_epoch,
        voters=voters,
        kraft_version=kraft_version,
        size=size,
    )


def read_snapshot(path: Path) -> Iterator[Batch]:
    """Read a snapshot: its records, and at the end an empty batch with the snapshot's last offset.

    Raises `OSError` and `MetadataLogError`; earlier batches must not be used then.
    """
    snapshot = open_snapshot(path)
    last_offset = snapshot.end_offset - 1
    # The feature levels have an older offset than the image, which contains the offset of their last change.
    offset = last_offset if snapshot.features_epoch == UNKNOWN else min(snapshot.features_epoch, last_offset)
    for values in read_values(path, epoch=snapshot.epoch):
        yield Batch(offset, snapshot.epoch, values)
        offset = last_offset
    yield Batch(last_offset, snapshot.epoch, ())


def read_image(path: Path) -> MetadataImage:
    """Read a snapshot whole; raises `OSError` and `MetadataLogError`."""
    loader = Loader()
    try:
        for batch in read_snapshot(path):
            loader.load(map(decode_record, batch.values), batch.last_offset, batch.epoch)
        loader.note_kraft_version(open_snapshot(path).kraft_version)
    except (ProtocolError, MetadataError) as error:
        raise _damaged(path, str(error)) from error
    return loader.publish()


def read_values(path: Path, *, epoch: int | None = None) -> Iterator[tuple[bytes, ...]]:
    """Read the records of a file in the format of a snapshot, batch by batch, and validate the whole file.

    With `epoch`, every batch must have this epoch. Raises `OSError` and `MetadataLogError`.
    """
    expected, is_ended, number = 0, False, 0
    with path.open("rb") as file:
        for number, raw in enumerate(_raw_batches(file, path), 1):
            if is_ended:
                raise _damaged(path, "batches follow its footer")
            base_offset, last_offset, batch_epoch, is_control, values = _parse(raw, path)
            if base_offset != expected:
                raise _damaged(path, f"record {expected} is missing before record {base_offset}")
            if epoch is not None and batch_epoch != epoch:
                raise _damaged(path, f"a batch is of epoch {batch_epoch}, but the file name has epoch {epoch}")
            expected = last_offset + 1
            if number == 1:
                _parse_head(raw, path)
            elif is_control:
                is_ended = _ends(raw, path)
            else:
                yield values
    if not is_ended:
        raise _damaged(path, f"it ends after {number} batches, without a footer")


def _encode_batches(
    header: SnapshotHeader,
    voters: VotersRecord | None,
    batches: Iterable[list[bytes]],
    epoch: int,
    now_ms: int,
    *,
    is_dynamic: bool = False,
) -> Iterator[bytes]:
    head = [(SNAPSHOT_HEADER, encode(header, 0))]
    if voters is not None or is_dynamic:
        head.append((KRAFT_VERSION, encode(KRaftVersionRecord(kraft_version=1), 0)))
    if voters is not None:
        head.append((KRAFT_VOTERS, encode(voters, 0)))
    yield _placed(build_control_batch(head, now_ms), 0, epoch)
    offset = len(head)
    for values in batches:
        yield _placed(build_record_batch(values, now_ms), offset, epoch)
        offset += len(values)
    footer = [(SNAPSHOT_FOOTER, encode(SnapshotFooterRecord(), 0))]
    yield _placed(build_control_batch(footer, now_ms), offset, epoch)


def _cut(records: Iterator[Message]) -> Iterator[list[bytes]]:
    """Encode records and group them into batches."""
    values: list[bytes] = []
    size = 0
    for record in records:
        value = _encode(record)
        values.append(value)
        size += len(value)
        if len(values) == _RECORDS_PER_BATCH or size >= _BYTES_PER_BATCH:
            yield values
            values, size = [], 0
    if values:
        yield values


def _encode(record: Message) -> bytes:
    return encode_record(record, RECORD_VERSIONS[type(record).__name__])


def _placed(batch: bytes, offset: int, epoch: int) -> bytes:
    """Set offset and epoch of a batch, which its checksum does not cover."""
    _, length, _ = _PREFIX.unpack_from(batch)
    return _PREFIX.pack(offset, length, epoch) + batch[_PREFIX.size :]


def _raw_batches(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Read a file batch by batch, never beyond the end of the file."""
    left = os.fstat(file.fileno()).st_size
    while left > 0:
        prefix = file.read(min(_PREFIX.size, left))
        if len(prefix) < _PREFIX.size:
            raise _damaged(path, "it ends inside of a batch")
        size = _PREFIX.unpack(prefix)[1] + _LENGTH_COUNTS_FROM
        if not _SMALLEST_BATCH <= size <= left:
            raise _damaged(path, f"a batch has a length of {size} bytes, but only {left} are left")
        raw = prefix + file.read(size - len(prefix))
        left -= size
        yield raw


def _parse(raw: bytes, path: Path) -> tuple[int, int, int, bool, tuple[bytes, ...]]:
    try:
        [(base_offset, last_offset, epoch, _, is_control, values)], size = parse_metadata_batches(raw)
    except MetadataLogError as error:
        raise _damaged(path, str(error)) from None
    if size != len(raw):
        raise _damaged(path, "bytes follow a batch")
    return base_offset, last_offset, epoch, is_control, values


def _parse_head(raw: bytes, path: Path) -> tuple[SnapshotHeader, VotersRecord | None, int]:
    records = _control_records(raw, path)
    kind, value = records[0]
    if kind != SNAPSHOT_HEADER:
        raise _damaged(path, f"it begins with a control record of type {kind}, not with a header ({SNAPSHOT_HEADER})")
    try:
        header = decode(SnapshotHeader, value, 0)[0]
        voters = [decode(VotersRecord, value, 0)[0] for kind, value in records if kind == KRAFT_VOTERS]
        levels = [
            decode(KRaftVersionRecord, value, 0)[0].kraft_version for kind, value in records if kind == KRAFT_VERSION
        ]
    except ProtocolError as error:
        raise _damaged(path, str(error)) from None
    return header, voters[-1] if voters else None, levels[-1] if levels else 0


def _ends(raw: bytes, path: Path) -> bool:
    """Return whether a control batch contains the footer."""
    return any(kind == SNAPSHOT_FOOTER for kind, _ in _control_records(raw, path))


def _control_records(raw: bytes, path: Path) -> list[tuple[int, bytes]]:
    try:
        return parse_control_batch(raw)
    except MetadataLogError as error:
        raise _damaged(path, str(error)) from None


def _damaged(path: Path, what: str) -> MetadataLogError:
    return MetadataLogError(f"snapshot {path} is damaged: {what}")
