"""Checks whether the metadata log may be opened: with a damaged log, partitions of lost topics would become strays.

Owns the rule and its messages. Reads files, and changes none. After a crash the log may end with an incomplete write
that nothing valid follows; then only entries are truncated that were never acknowledged. All other damage is an error.
A log that is missing, empty or shorter than other files prove is also an error (`lost_records`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.hard_state import read_hard_state
from pybroker.controller.quorum.log.lost_records import ACCEPT_LOSS, Replica, check_nothing_lost
from pybroker.controller.quorum.native import verify_log
from pybroker.controller.quorum.voters.voter_set import NO_DIRECTORY
from pybroker.storage.log_dirs.meta_properties import id_bytes
from pybroker.storage.log_dirs.partition_directory import find_partitions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pybroker.storage.log_dirs.directories import Directories

_FILES_MATTER = frozenset({"records"})


def check_before_start(directories: Directories, node_id: int, voters: Sequence[int]) -> None:
    """Raise the error that prevents opening the metadata log, before a start changes anything (ADR 0027).

    `voters` are the node ids in the configuration, empty if the log contains the voter set.
    """
    metadata = directories.metadata
    directory = metadata.path / DIRECTORY_NAME
    partitions = [path for one in directories.online for path in find_partitions(one.path)]
    end_offset = check_metadata_log(
        metadata.path,
        clean_shutdown=any(one.was_left_cleanly for one in directories.online),
        partitions=partitions,
    )
    read_hard_state(directory)
    if end_offset is not None:
        directory_id = NO_DIRECTORY if metadata.meta is None else id_bytes(metadata.meta.directory_id)
        check_nothing_lost(directory, end_offset, Replica(node_id, directory_id, voters), partitions)


def check_metadata_log(parent: Path, *, clean_shutdown: bool, partitions: Sequence[Path]) -> int | None:
    """Return the end offset of the log in `parent`, None if there is no log and none is expected.

    `clean_shutdown`: the last run of the broker stopped cleanly. `partitions` are the broker's partition directories.
    Raises MetadataLogError if the log must not be opened, and OSError if it cannot be read.
    """
    directory = parent / DIRECTORY_NAME
    if not directory.is_dir():
        if partitions or clean_shutdown:
            raise MetadataLogError(f"metadata log {directory} is missing{_what_it_means(partitions)}")
        return None
    found = verify_log(
        str(directory),
        clean_shutdown=clean_shutdown,
        recovery_point=-1,
        log_start_offset=-1,
        high_watermark=0,
        compacted_to=0,
        is_partition=False,
    )
    for name, severity, kind, text in found.findings:
        if severity != "note" and kind in _FILES_MATTER:
            raise MetadataLogError(
                f"metadata log {directory} is damaged: {name}: {text}. The broker does not start, as it would lose the "
                "topics in the rest of the log: restore the directory from a backup. To drop the "
                f"rest of the log instead, cut {name} before the damaged bytes (truncate --size), move later "
                f"segments away, and create the empty file {directory / ACCEPT_LOSS}: partitions of topics that "
                "the log no longer contains are renamed to -stray, and kept"
            )
    if found.log_end_offset == 0 and (partitions or clean_shutdown):
        raise MetadataLogError(f"metadata log {directory} is empty{_what_it_means(partitions)}")
    return found.log_end_offset


def _what_it_means(partitions: Sequence[Path]) -> str:
    held = f", but {len(partitions)} partitions exist, such as {partitions[0]}" if partitions else ""
    return (
        f"{held}. The broker does not start, as it would treat every partition as stray: restore the directory from "
        "a backup or set metadata.log.dir to its path; for a new cluster set log.dirs to empty directories"
    )
