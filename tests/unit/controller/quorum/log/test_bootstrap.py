"""The files that a formatted directory begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import DIRECTORY_NAME, Batch
from pybroker.controller.quorum.log.bootstrap import FILE_NAME, read_bootstrap, write_bootstrap, write_first_voters
from pybroker.controller.quorum.snapshot.snapshots import newest_snapshot, read_snapshot
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.voters import Voter, VotersRecord

RECORDS = [
    FeatureLevelRecord(name="metadata.version", feature_level=25),
    FeatureLevelRecord(name="group.version", feature_level=1),
]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_bootstrap(tmp_path) is None
    write_bootstrap(tmp_path, RECORDS, 7)
    assert read_bootstrap(tmp_path) == RECORDS


def test_a_damaged_file_is_refused_by_name(tmp_path: Path) -> None:
    path = write_bootstrap(tmp_path, RECORDS, 7)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        MetadataLogError, match=rf"{FILE_NAME} is damaged: a batch has a length of 75 bytes, but only 74 are left"
    ):
        read_bootstrap(tmp_path)


def test_the_first_voters_are_a_snapshot_at_offset_0(tmp_path: Path) -> None:
    voters = VotersRecord(voters=[Voter(voter_id=1, voter_directory_id=b"d" * 16)])
    path = write_first_voters(tmp_path, voters, 7)
    assert path == tmp_path / DIRECTORY_NAME / "00000000000000000000-0000000000.checkpoint"
    found = newest_snapshot(tmp_path / DIRECTORY_NAME)
    assert found is not None
    assert found.voters == voters
    assert list(read_snapshot(path)) == [Batch(-1, 0, ())]
