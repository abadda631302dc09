"""A voter and its disk: what was acknowledged is there after every crash."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pybroker.controller.errors import ControllerError, MetadataLogError
from pybroker.controller.quorum.batches import DIRECTORY_NAME, Batch
from pybroker.controller.quorum.log.hard_state import FILE_NAME, HardState, read_hard_state, write_hard_state
from pybroker.controller.quorum.native import parse_metadata_batches
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.quorum.snapshot.snapshots import SnapshotId
from pybroker.controller.quorum.voter import SnapshotMark, Voter

LOG = "00000000000000000000.log"


class Alone:
    """The only voter of its quorum, whose disk is written at once."""

    def __init__(self, voter: Voter) -> None:
        self.voter = voter

    @property
    def term(self) -> int:
        return self.voter.term

    @property
    def is_leader(self) -> bool:
        return self.voter.is_leader

    @property
    def next_offset(self) -> int:
        return self.voter.next_offset

    def campaign(self, values: list[bytes]) -> list[Batch]:
        self.voter.campaign()
        return self.commit(values) if values and self.is_leader else self.work()

    def commit(self, values: list[bytes]) -> list[Batch]:
        self.voter.propose(values)
        return self.work()

    def work(self) -> list[Batch]:
        committed: list[Batch] = []
        while (step := self.voter.step()) is not None:
            self.voter.log.write([step.writing])
            self.voter.persisted(step.writing.number)
            committed += [entry.batch() for entry in step.committed]
        return committed

    def close(self) -> None:
        self.voter.log.close()


def open_voter(directory: Path, *, segment_bytes: int = 1 << 20) -> tuple[Alone, list[Batch]]:
    replayed: list[Batch] = []
    settings = QuorumSettings(directory, "c", 1, (1,), segment_bytes, segment_ms=1 << 40)
    voter = Voter.open(settings, now_ms=lambda: 1_700_000_000_000, replay=replayed.append)
    return Alone(voter), replayed


def values(batches: list[Batch]) -> list[bytes]:
    return [value for batch in batches for value in batch.values]


def test_a_new_quorum_of_one_leads_at_once_and_commits(tmp_path: Path) -> None:
    voter, replayed = open_voter(tmp_path)
    assert replayed == []
    assert voter.campaign([b"first"]) == [Batch(0, 1, ()), Batch(1, 1, (b"first",))]
    assert voter.is_leader
    assert voter.commit([b"a", b"b"]) == [Batch(3, 1, (b"a", b"b"))]
    assert voter.next_offset == 4
    voter.close()


def test_a_restart_replays_in_the_same_batches_and_leads_in_the_next_term(tmp_path: Path) -> None:
    voter, _ = open_voter(tmp_path)
    committed = voter.campaign([]) + voter.commit([b"a", b"b"]) + voter.commit([b"c"])
    voter.close()
    voter, replayed = open_voter(tmp_path)
    assert replayed == committed
    assert voter.campaign([]) == [Batch(4, 2, ())]
    assert voter.commit([b"d"]) == [Batch(5, 2, (b"d",))]
    voter.close()
    assert read_hard_state(tmp_path / DIRECTORY_NAME) == HardState(2, 1)


def test_the_log_is_one_batch_for_each_entry_and_a_term_begins_with_a_leader_change(tmp_path: Path) -> None:
    voter, _ = open_voter(tmp_path)
    voter.campaign([])
    voter.commit([b"a", b"b"])
    voter.close()
    batches, _ = parse_metadata_batches((tmp_path / DIRECTORY_NAME / LOG).read_bytes())
    assert [(base, last, epoch, control) for base, last, epoch, _, control, _ in batches] == [
        (0, 0, 1, True),
        (1, 2, 1, False),
    ]


def test_a_log_of_many_segments_is_replayed_whole(tmp_path: Path) -> None:
    voter, _ = open_voter(tmp_path, segment_bytes=500)
    committed = voter.campaign([])
    for number in range(30):
        committed += voter.commit([b"%d" % number * 40])
    voter.close()
    assert len(list((tmp_path / DIRECTORY_NAME).glob("*.log"))) > 3
    voter, replayed = open_voter(tmp_path, segment_bytes=500)
    assert replayed == committed
    voter.close()


def test_whatever_byte_a_crash_cuts_the_log_at_what_was_acknowledged_is_there(tmp_path: Path) -> None:
    voter, _ = open_voter(tmp_path / "whole")
    voter.campaign([])
    voter.commit([b"a", b"b"])
    whole = tmp_path / "whole" / DIRECTORY_NAME
    acknowledged = (whole / LOG).stat().st_size
    voter.commit([b"c", b"d"])
    voter.commit([b"e"])
    end = (whole / LOG).stat().st_size
    # As a kill leaves it: nothing closed, nothing trimmed.
    crashed = tmp_path / "crashed"
    for cut in range(acknowledged, end + 1):
        shutil.rmtree(crashed, ignore_errors=True)
        shutil.copytree(tmp_path / "whole", crashed)
        with (crashed / DIRECTORY_NAME / LOG).open("r+b") as file:
            file.truncate(cut)
        again, replayed = open_voter(crashed)
        found = values(replayed)
        assert found in ([b"a", b"b"], [b"a", b"b", b"c", b"d"], [b"a", b"b", b"c", b"d", b"e"]), cut
        if cut % 16 == 0 or cut == end:
            assert values(again.campaign([]) + again.commit([b"f"])) == [b"f"]
            again.close()
            again, replayed = open_voter(crashed)
            assert values(replayed) == [*found, b"f"], cut
        again.close()
    voter.close()


@pytest.mark.parametrize("length", [0, 1, 40, 90])
def test_a_crash_during_the_first_start_is_a_first_start(tmp_path: Path, length: int) -> None:
    voter, _ = open_voter(tmp_path)
    voter.campaign([b"first"])
    voter.close()
    with (tmp_path / DIRECTORY_NAME / LOG).open("r+b") as file:
        file.truncate(length)
    voter, replayed = open_voter(tmp_path)
    assert replayed == []
    assert values(voter.campaign([b"first"])) == [b"first"]
    assert voter.term == 2
    voter.close()


@pytest.mark.parametrize("left", ["nothing", "the first term's", "the next term's", "half a write"])
def test_a_crash_between_hard_state_and_log_leads_on_in_a_later_term(tmp_path: Path, left: str) -> None:
    directory = tmp_path / DIRECTORY_NAME
    for number in range(2):
        voter, _ = open_voter(tmp_path)
        voter.campaign([])
        voter.commit([b"%d" % number])
        voter.close()
    newest = 2
    match left:
        case "nothing":
            (directory / FILE_NAME).unlink()
        case "the first term's":
            write_hard_state(directory, HardState(1, 1), 1, [1])
        case "the next term's":
            newest = 3
            write_hard_state(directory, HardState(3, 1), None, [1])
        case _:
            (directory / f"{FILE_NAME}.tmp").write_text("{")
    voter, replayed = open_voter(tmp_path)
    assert values(replayed) == [b"0", b"1"]
    voter.campaign([])
    assert voter.term == newest + 1
    assert read_hard_state(directory) == HardState(newest + 1, 1)
    voter.close()


def test_a_hard_state_that_is_none_stops_the_start(tmp_path: Path) -> None:
    voter, _ = open_voter(tmp_path)
    voter.campaign([])
    voter.close()
    (tmp_path / DIRECTORY_NAME / FILE_NAME).write_text("?")
    with pytest.raises(ControllerError, match=FILE_NAME):
        open_voter(tmp_path)


def test_several_voters_wait_for_each_other_before_anything_is_replayed(tmp_path: Path) -> None:
    voter, _ = open_voter(tmp_path)
    voter.campaign([])
    voter.commit([b"a"])
    voter.close()
    replayed: list[Batch] = []
    one = Alone(Voter.open(QuorumSettings(tmp_path, "c", 1, (1, 2, 3)), now_ms=lambda: 0, replay=replayed.append))
    assert replayed == []
    assert one.campaign([b"x"]) == []
    assert not one.is_leader
    one.close()


def test_readies_are_under_way_together_and_written_with_one_sync(tmp_path: Path) -> None:
    one, _ = open_voter(tmp_path)
    one.campaign([])
    voter, steps = one.voter, []
    for value in (b"a", b"b"):
        voter.propose([value])
        step = voter.step()
        assert step is not None
        assert not step.committed
        steps.append(step)
    assert voter.step() is None
    assert voter.next_offset == 3
    voter.log.write([step.writing for step in steps])
    voter.persisted(steps[-1].writing.number)
    after = voter.step()
    assert after is not None
    assert [entry.batch() for entry in after.committed] == [Batch(1, 1, (b"a",)), Batch(2, 1, (b"b",))]
    one.close()


def test_a_log_goes_on_behind_a_snapshot(tmp_path: Path) -> None:
    one, _ = open_voter(tmp_path)
    committed = one.campaign([]) + one.commit([b"a", b"b"]) + one.commit([b"c"])
    mark = SnapshotMark(2, SnapshotId(3, 1))
    one.voter.set_snapshot(mark)
    one.voter.forget_before(3)
    committed += one.commit([b"d"])
    one.close()
    replayed: list[Batch] = []
    settings = QuorumSettings(tmp_path, "c", 1, (1,))
    again = Alone(Voter.open(settings, now_ms=lambda: 0, replay=replayed.append, snapshot=mark))
    assert replayed == committed[2:]
    assert again.voter.last_index == 4
    assert again.campaign([b"e"])[-1] == Batch(6, 2, (b"e",))
    again.close()


def test_a_log_that_ends_before_a_snapshot_begins_anew_behind_it(tmp_path: Path) -> None:
    one, _ = open_voter(tmp_path)
    one.campaign([b"a"])
    one.close()
    settings = QuorumSettings(tmp_path, "c", 1, (1,))
    mark = SnapshotMark(50, SnapshotId(100, 7))
    again = Alone(Voter.open(settings, now_ms=lambda: 0, replay=lambda _: None, snapshot=mark))
    assert again.campaign([b"b"]) == [Batch(100, 8, ()), Batch(101, 8, (b"b",))]
    again.close()


def test_a_log_that_begins_behind_its_snapshot_is_refused(tmp_path: Path) -> None:
    settings = QuorumSettings(tmp_path, "c", 1, (1,))
    far = SnapshotMark(50, SnapshotId(100, 7))
    Voter.open(settings, now_ms=lambda: 0, replay=lambda _: None, snapshot=far).log.close()
    for snapshot in (None, SnapshotMark(5, SnapshotId(10, 1))):
        with pytest.raises(MetadataLogError, match="begins at offset 100"):
            Voter.open(settings, now_ms=lambda: 0, replay=lambda _: None, snapshot=snapshot)
