"""The initial files of a new cluster: the records of `bootstrap.checkpoint`, and the first voters.

Owns the two files that formatting a directory writes, as Kafka's storage tool does: the records that the first leader
commits first, and a snapshot at offset 0 with the voter set (kraft.version 1). Both have the format of a snapshot. Must
not know which records those are.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.log_position import POSITION_NAME
from pybroker.controller.quorum.snapshot.snapshots import SnapshotId, encode_records, read_values, write_file
from pybroker.protocol.errors import ProtocolError
from pybroker.protocol.messages.records.frame import decode_record

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pybroker.protocol.messages.records.voters import VotersRecord
    from pybroker.protocol.schema import Message

FILE_NAME = "bootstrap.checkpoint"


def write_bootstrap(directory: Path, records: Iterable[Message], now_ms: int) -> Path:
    """Write `bootstrap.checkpoint` into the parent directory of the metadata log; raises `OSError`.

    Removes the log position of an earlier cluster in this directory.
    """
    (directory / POSITION_NAME).unlink(missing_ok=True)
    return write_file(directory / FILE_NAME, encode_records(records, 0, now_ms))


def read_bootstrap(directory: Path) -> list[Message] | None:
    """Return the records of the file, None without a file; raises `OSError` and `MetadataLogError`."""
    path = directory / FILE_NAME
    if not path.exists():
        return None
    try:
        return [decode_record(value) for values in read_values(path) for value in values]
    except ProtocolError as error:
        raise MetadataLogError(f"{path} cannot be read: {error}") from error


def write_first_voters(directory: Path, voters: VotersRecord, now_ms: int) -> Path:
    """Write the snapshot at offset 0 with the voter set, creating the log's directory; raises `OSError`."""
    log_directory = directory / DIRECTORY_NAME
    log_directory.mkdir(exist_ok=True)
    return write_file(log_directory / SnapshotId(0, 0).file_name, encode_records((), 0, now_ms, voters=voters))


def remove_first_files(directory: Path) -> None:
    """Remove the files of the two functions above after a failed formatting; raises nothing."""
    log_directory = directory / DIRECTORY_NAME
    for path in (directory / FILE_NAME, log_directory / SnapshotId(0, 0).file_name):
        with contextlib.suppress(OSError):
            path.unlink()
    with contextlib.suppress(OSError):
        log_directory.rmdir()
