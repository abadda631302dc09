"""Snapshots on disk: whole or not there, and read to the last byte or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import Batch
from pybroker.controller.quorum.snapshot.snapshots import (
    PART_SUFFIX,
    SnapshotId,
    SnapshotWriter,
    encode_snapshot,
    list_snapshots,
    newest_snapshot,
    read_snapshot,
    remove_parts,
    write_snapshot,
)
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import MetadataImage
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.frame import decode_record
from pybroker.protocol.messages.records.partition import PartitionRecord
from pybroker.protocol.messages.records.topic import TopicRecord
from pybroker.protocol.messages.records.voters import Voter, VotersRecord

OFFSET, EPOCH = 41, 3


def an_image(partitions: int = 3) -> MetadataImage:
    delta = MetadataDelta(MetadataImage())
    delta.apply(FeatureLevelRecord(name="metadata.version", feature_level=25))
    delta.reach(1, 1)
    delta.apply(TopicRecord(name="t", topic_id=b"t" * 16))
    for index in range(partitions):
        delta.apply(
            PartitionRecord(
                partition_id=index,
                topic_id=b"t" * 16,
                replicas=[1, 2],
                isr=[1],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
            )
        )
    delta.reach(OFFSET, EPOCH)
    return delta.build()


def written(directory: Path, **more: VotersRecord) -> Path:
    snapshot = write_snapshot(directory, an_image(), OFFSET + 1, EPOCH, 12, 1_700_000_000_000, **more)
    return directory / snapshot.file_name


def test_its_name_is_kafkas_and_its_header_says_what_a_voter_asks_for(tmp_path: Path) -> None:
    voters = VotersRecord(voters=[Voter(voter_id=1, voter_directory_id=b"d" * 16)])
    path = written(tmp_path, voters=voters)
    assert path.name == "00000000000000000042-0000000003.checkpoint"
    found = newest_snapshot(tmp_path)
    assert found is not None
    assert (found.path, found.end_offset, found.epoch, found.raft_index) == (path, 42, 3, 12)
    assert (found.timestamp_ms, found.features_epoch, found.voters) == (1_700_000_000_000, 1, voters)
    assert found.size == path.stat().st_size


def test_it_is_read_with_the_offsets_at_which_the_log_said_it(tmp_path: Path) -> None:
    *batches, last = read_snapshot(written(tmp_path))
    assert last == Batch(OFFSET, EPOCH, ())
    assert [batch.last_offset for batch in batches] == [1, OFFSET]
    assert [type(decode_record(value)).__name__ for batch in batches for value in batch.values] == [
        "FeatureLevelRecord",
        "TopicRecord",
        *["PartitionRecord"] * 3,
    ]


def test_a_large_image_is_many_batches_none_of_them_large() -> None:
    chunks = list(encode_snapshot(an_image(5000), SnapshotId(OFFSET + 1, EPOCH), 12, 0))
    assert len(chunks) > 10
    assert max(map(len, chunks)) < 1 << 19


def test_the_newest_is_that_of_the_highest_offset(tmp_path: Path) -> None:
    for end_offset, epoch in ((9, 4), (10, 2), (8, 9)):
        write_snapshot(tmp_path, an_image(), end_offset, epoch, -1, 0)
    assert list_snapshots(tmp_path) == [(8, 9), (9, 4), (10, 2)]
    newest = newest_snapshot(tmp_path)
    assert newest is not None
    assert newest.id == (10, 2)
    assert newest_snapshot(tmp_path / "absent") is None


def test_what_is_not_finished_has_no_name_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / SnapshotId(5, 1).file_name
    with SnapshotWriter(path) as writer:
        writer.write(b"half")
        assert newest_snapshot(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_what_a_crash_left_of_one_is_removed(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.with_name(path.name + PART_SUFFIX).write_bytes(b"half")
    remove_parts(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_every_cut_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(MetadataLogError, match=f"snapshot {path} is damaged"):
            list(read_snapshot(path))


def test_every_changed_byte_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    expected = list(read_snapshot(path))
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            read = list(read_snapshot(path))
        except MetadataLogError:
            continue
        assert read == expected, at


def test_bytes_behind_the_footer_and_missing_or_repeated_batches_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    head, features, rest, footer = encode_snapshot(an_image(), SnapshotId(OFFSET + 1, EPOCH), 12, 0)
    for chunks, what in (
        ((head, features, rest, footer, footer), "batches follow its footer"),
        ((head, rest, footer), "record 1 is missing before record 2"),
        ((head, features, features, rest, footer), "record 2 is missing before record 1"),
        ((features, rest, footer), "it holds no control records|is none of control records"),
        ((head, features, rest), "without a footer"),
        ((footer,), "begins with a control record of type 4"),
        ((), "it is empty"),
    ):
        path.write_bytes(b"".join(chunks))
        with pytest.raises(MetadataLogError, match=what):
            list(read_snapshot(path))


def test_a_length_beyond_the_file_takes_no_memory(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(bytes(8) + (2**31 - 1).to_bytes(4) + bytes(100))
    with pytest.raises(MetadataLogError, match=r"a batch has a length of 2147483659 bytes, but only 112 are left"):
        newest_snapshot(tmp_path)


def test_a_file_of_another_epoch_than_its_name_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    renamed = path.rename(tmp_path / SnapshotId(OFFSET + 1, EPOCH + 1).file_name)
    with pytest.raises(MetadataLogError, match="a batch is of epoch 3, but the file name has epoch 4"):
        list(read_snapshot(renamed))
