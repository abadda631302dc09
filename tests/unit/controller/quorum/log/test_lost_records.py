"""A metadata log that other files prove to have been longer is refused, and no other log is."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.hard_state import HardState, write_hard_state
from pybroker.controller.quorum.log.log_position import POSITION_NAME, LogPosition, PositionFile
from pybroker.controller.quorum.log.lost_records import ACCEPT_LOSS, Replica, check_nothing_lost, clear_acceptance
from pybroker.controller.quorum.log.metadata_log import MetadataLog, Writing
from pybroker.controller.quorum.native import build_record_batch
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.quorum.snapshot.snapshots import SnapshotId, encode_records, write_file
from pybroker.controller.quorum.voters.control_records import build_voters
from pybroker.controller.quorum.voters.voter_set import VoterNode, VoterSet
from pybroker.protocol.messages.records.frame import encode_record
from pybroker.protocol.messages.records.no_op import NoOpRecord
from pybroker.protocol.messages.records.remove_topic import RemoveTopicRecord
from pybroker.protocol.messages.records.topic import TopicRecord
from pybroker.protocol.schema import Message
from pybroker.storage.log_dirs.meta_properties import id_text

NOW_MS = 1_700_000_000_000
ORDERS, EVENTS = b"o" * 16, b"e" * 16
ALONE = Replica(1, voters=(1,))
OF_THREE = Replica(1, voters=(1, 2, 3))
DIRECTORY_ID = b"\x07" * 16
NO_OP = NoOpRecord()

created = TopicRecord(name="orders", topic_id=ORDERS)
deleted = RemoveTopicRecord(topic_id=ORDERS)


def batch(*records: Message) -> bytes:
    return build_record_batch([encode_record(record, 0) for record in records], NOW_MS)


def write_log(root: Path, batches: Iterable[bytes], *, epoch: int = 1, begins_at: int = 0) -> int:
    """Add batches to the metadata log; returns its end offset."""
    log = MetadataLog(QuorumSettings(root, "c", 1, (1,)), lambda: NOW_MS)
    restart = begins_at or None
    log.write([Writing(1, restart, None, None, (), None, [(epoch, one) for one in batches], ())])
    end_offset = log.end_offset
    log.close()
    return end_offset


def write_partition(root: Path, name: str, topic_id: bytes, *, written_ms: int = NOW_MS) -> Path:
    directory = root / name
    directory.mkdir()
    metadata = directory / "partition.metadata"
    metadata.write_text(f"version: 0\ntopic_id: {id_text(topic_id)}\n")
    os.utime(metadata, (written_ms / 1000, written_ms / 1000))
    return directory


def write_snapshot(root: Path, end_offset: int, *records: Message, taken_ms: int = NOW_MS) -> None:
    (root / DIRECTORY_NAME).mkdir(exist_ok=True)
    path = root / DIRECTORY_NAME / SnapshotId(end_offset, 1).file_name
    write_file(path, encode_records(records, 1, taken_ms))


def refusal(root: Path, end_offset: int, replica: Replica, *partitions: Path) -> str | None:
    """Why a start is refused, None where it continues."""
    try:
        check_nothing_lost(root / DIRECTORY_NAME, end_offset, replica, partitions)
    except MetadataLogError as error:
        return str(error)
    return None


@pytest.mark.parametrize("records", [[created], [created, deleted], [deleted]], ids=["created", "deleted", "trimmed"])
def test_a_partition_whose_topic_has_a_record_proves_nothing(tmp_path: Path, records: list[Message]) -> None:
    end = write_log(tmp_path, [batch(NO_OP), *map(batch, records)])
    assert refusal(tmp_path, end, ALONE, write_partition(tmp_path, "orders-0", ORDERS)) is None


def test_a_partition_whose_topic_has_no_record_is_named_with_its_topic_id(tmp_path: Path) -> None:
    end = write_log(tmp_path, [batch(created), batch(NO_OP)])
    known = write_partition(tmp_path, "orders-0", ORDERS)
    lost = [write_partition(tmp_path, f"events-{index}", EVENTS) for index in (0, 1)]
    text = refusal(tmp_path, end, ALONE, known, *lost)
    assert text is not None
    assert text.startswith(f"metadata log {tmp_path / DIRECTORY_NAME} lost records: 00000000000000000000.log ends at ")
    assert f"offset 2, without a record of events (topic id {id_text(EVENTS)}, {tmp_path}/events-" in text
    assert "orders" not in text
    assert "restore the directory from a backup" in text
    assert f"create the empty file {tmp_path / DIRECTORY_NAME / ACCEPT_LOSS}" in text


def test_many_lost_topics_are_counted(tmp_path: Path) -> None:
    end = write_log(tmp_path, [batch(NO_OP)])
    lost = [write_partition(tmp_path, f"t{one}-0", bytes([one]) * 16) for one in range(1, 6)]
    assert re.search(r"t1 \(.*, t2 \(.*, t3 \(.*\) and 2 more\.", refusal(tmp_path, end, ALONE, *lost) or "")


def test_a_future_replica_proves_its_topic_too(tmp_path: Path) -> None:
    end = write_log(tmp_path, [batch(NO_OP)])
    moved = write_partition(tmp_path, f"events-0.{'a' * 32}-future", EVENTS)
    assert re.search(r"without a record of events \(", refusal(tmp_path, end, ALONE, moved) or "")


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"version: 0\n"])
def test_a_partition_without_a_topic_id_proves_nothing(tmp_path: Path, content: bytes | None) -> None:
    end = write_log(tmp_path, [batch(NO_OP)])
    directory = write_partition(tmp_path, "events-0", EVENTS)
    (directory / "partition.metadata").unlink()
    if content is not None:
        (directory / "partition.metadata").write_bytes(content)
    assert refusal(tmp_path, end, ALONE, directory) is None


def test_a_partition_older_than_the_snapshot_may_be_of_a_deleted_topic(tmp_path: Path) -> None:
    # Its log directory was offline when the topic was deleted, and snapshots have replaced both records since.
    write_snapshot(tmp_path, 10, NO_OP)
    end = write_log(tmp_path, [batch(NO_OP)], begins_at=10)
    assert refusal(tmp_path, end, ALONE, write_partition(tmp_path, "events-0", EVENTS, written_ms=NOW_MS - 1)) is None


def test_a_partition_younger_than_the_snapshot_needs_a_record(tmp_path: Path) -> None:
    write_snapshot(tmp_path, 10, created)
    end = write_log(tmp_path, [batch(NO_OP)], begins_at=10)
    # A move to another directory writes the file anew.
    moved = write_partition(tmp_path, "orders-0", ORDERS, written_ms=NOW_MS + 5_000)
    assert refusal(tmp_path, end, ALONE, moved) is None
    lost = write_partition(tmp_path, "events-0", EVENTS, written_ms=NOW_MS + 5_000)
    assert re.search(
        r"ends at offset 11, without a record of events \(", refusal(tmp_path, end, ALONE, moved, lost) or ""
    )


def put_a_snapshot_beyond(root: Path) -> None:
    write_snapshot(root, 30, created)


def put_an_epoch_beyond(root: Path) -> None:
    (root / DIRECTORY_NAME / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n4 9\n")


def put_voters_beyond(root: Path) -> None:
    write_hard_state(root / DIRECTORY_NAME, HardState(1, 1, 12), 1, [1])


@pytest.mark.parametrize(
    ("put", "words"),
    [
        (put_a_snapshot_beyond, "the snapshot 00000000000000000030-0000000001.checkpoint ends at offset 30"),
        (put_an_epoch_beyond, "epoch 4 begins at offset 9 in leader-epoch-checkpoint"),
        (put_voters_beyond, "quorum-state has a change of voters that ends at offset 12"),
    ],
)
def test_a_file_that_is_ahead_of_the_log_refuses_the_only_voter(
    tmp_path: Path, put: Callable[[Path], None], words: str
) -> None:
    end = write_log(tmp_path, [batch(NO_OP), batch(NO_OP)])
    put(tmp_path)
    assert re.search(f"ends at offset 2, and {words}", refusal(tmp_path, end, ALONE) or "")
    assert refusal(tmp_path, end, OF_THREE) is None


def test_an_epoch_that_has_no_record_yet_proves_nothing(tmp_path: Path) -> None:
    # The file is written before the first batch of an epoch; a crash may come in between.
    end = write_log(tmp_path, [batch(NO_OP), batch(NO_OP)])
    (tmp_path / DIRECTORY_NAME / "leader-epoch-checkpoint").write_text(f"0\n2\n1 0\n2 {end}\n")
    assert refusal(tmp_path, end, ALONE) is None


@pytest.mark.parametrize("content", [b"", b"0\n", b"0\n1\n", b"\xff\n\xff\n\xff \xff\n", b"0\n1\n1\n", b"9" * 5000])
def test_a_damaged_leader_epoch_checkpoint_proves_nothing(tmp_path: Path, content: bytes) -> None:
    end = write_log(tmp_path, [batch(NO_OP)])
    (tmp_path / DIRECTORY_NAME / "leader-epoch-checkpoint").write_bytes(content)
    assert refusal(tmp_path, end, ALONE) is None


def test_one_of_several_voters_may_be_behind(tmp_path: Path) -> None:
    end = write_log(tmp_path, [batch(NO_OP)])
    assert refusal(tmp_path, end, OF_THREE, write_partition(tmp_path, "events-0", EVENTS)) is None


@pytest.mark.parametrize(
    ("named", "refuses"),
    [
        ([VoterNode(1, DIRECTORY_ID)], True),
        ([VoterNode(1, b"\x08" * 16)], False),
        ([VoterNode(1, DIRECTORY_ID), VoterNode(2, b"\x09" * 16)], False),
    ],
    ids=["this replica", "another directory", "two"],
)
def test_the_log_names_the_voters(tmp_path: Path, named: list[VoterNode], refuses: bool) -> None:
    end = write_log(tmp_path, [batch(NO_OP), build_voters(VoterSet.of(named), NOW_MS, is_first=True)])
    partition = write_partition(tmp_path, "events-0", EVENTS)
    replica = Replica(1, DIRECTORY_ID)
    assert (refusal(tmp_path, end, replica, partition) is not None) == refuses


@pytest.mark.parametrize("tail", [bytes(300), b"\xde\xad\xbe\xef" * 50, batch(created)[:-1]])
def test_a_write_that_did_not_end_is_no_record(tmp_path: Path, tail: bytes) -> None:
    end = write_log(tmp_path, [batch(NO_OP)])
    with (tmp_path / DIRECTORY_NAME / "00000000000000000000.log").open("ab") as segment:
        segment.write(end.to_bytes(8) + tail[8:])
    assert refusal(tmp_path, end, ALONE) is None
    assert re.search(
        "without a record of orders", refusal(tmp_path, end, ALONE, write_partition(tmp_path, "orders-0", ORDERS)) or ""
    )


def test_an_accepted_loss_is_logged_and_accepted_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    end = write_log(tmp_path, [batch(NO_OP)])
    partition = write_partition(tmp_path, "events-0", EVENTS)
    accepted = tmp_path / DIRECTORY_NAME / ACCEPT_LOSS
    accepted.touch()
    assert refusal(tmp_path, end, ALONE, partition) is None
    assert f"Continuing without the lost records: {accepted} exists" in caplog.text
    clear_acceptance(tmp_path / DIRECTORY_NAME)
    assert not accepted.exists()
    assert re.search("lost records", refusal(tmp_path, end, ALONE, partition) or "")


def test_an_acceptance_that_cannot_be_removed_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / ACCEPT_LOSS).mkdir()
    clear_acceptance(tmp_path)
    assert f"Failed to remove {tmp_path / ACCEPT_LOSS}, which would hide another loss" in caplog.text


@pytest.mark.parametrize(("acknowledged", "is_lost"), [(1, False), (2, False), (3, True)])
def test_an_acknowledged_record_beyond_the_end_proves_a_loss(tmp_path: Path, acknowledged: int, is_lost: bool) -> None:
    end = write_log(tmp_path, [batch(NO_OP), batch(NO_OP)])
    file = PositionFile(tmp_path)
    file.write(LogPosition(1, 1, acknowledged, acknowledged))
    file.close()
    text = refusal(tmp_path, end, ALONE)
    assert (text is not None) == is_lost
    if text is not None:
        assert f"ends at offset 2, and {POSITION_NAME} has acknowledged offset 2" in text
