"""Voters that lost acknowledged records: whom they elect, what both sides log, and what the operator may decide."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.log_position import POSITION_NAME, LogPosition, PositionFile, read_position
from pybroker.controller.quorum.log.losses import find_lost
from pybroker.controller.quorum.log.lost_records import ACCEPT_LOSS
from tests.support.log_damage import DAMAGES, cut_batches
from tests.support.quorums import QuorumOf, quorum_of, until
from tests.unit.controller.quorum.test_driver import create, create_in, topics


async def committed_by_two(quorum: QuorumOf, tmp_path: Path) -> tuple[int, int, int]:
    """A topic that the leader and one follower have, and the other follower lacks; the leader is down then.

    Returns the leader, the one that has it, and the one that lacks it.
    """
    leader = await quorum.elected()
    await create(leader, "old")
    await quorum.agreed()
    has, lacks = (node.node_id for node in quorum.nodes if node is not leader)
    shutil.copytree(tmp_path / str(has) / DIRECTORY_NAME, tmp_path / "older")
    await quorum.nodes[lacks].kill()
    await create(leader, "new")
    await until(lambda: "new" in topics(quorum.nodes[has]))
    await quorum.nodes[has].kill()
    await leader.kill()
    return leader.node_id, has, lacks


async def have_tried(quorum: QuorumOf, *numbers: int) -> None:
    """Voters that reach each other have stood for election as often as they do without a timeout."""
    drivers = [quorum.nodes[number].controller._driver for number in numbers]
    await until(lambda: all(driver.peers.connected for driver in drivers), within=60)
    await until(lambda: all(driver._campaigns_left == 0 for driver in drivers), within=60)


@pytest.mark.parametrize("damage", DAMAGES)
async def test_no_leader_is_elected_without_what_two_voters_have_committed(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with quorum_of(tmp_path, 3, fetch_timeout_ms=100_000) as quorum:
        leader, lost, lacks = await committed_by_two(quorum, tmp_path)
        DAMAGES[damage](tmp_path / str(lost), tmp_path / "older")
        await asyncio.gather(quorum.restart(lost), quorum.restart(lacks))
        await have_tried(quorum, lacks)
        assert quorum.leader() is None
        assert f"metadata log {tmp_path / str(lost) / DIRECTORY_NAME} lost records: it ends at offset" in caplog.text
        await quorum.restart(leader)
        await quorum.elected()
        await create_in(quorum, "newest")
        await until(lambda: all(topics(node) == {"old", "new", "newest"} for node in quorum.nodes))


async def test_a_loss_that_the_operator_accepts_is_a_loss(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with quorum_of(tmp_path, 3) as quorum:
        _, lost, lacks = await committed_by_two(quorum, tmp_path)
        cut_batches(tmp_path / str(lost), tmp_path, 1)
        accepted = tmp_path / str(lost) / DIRECTORY_NAME / ACCEPT_LOSS
        accepted.touch()
        await asyncio.gather(quorum.restart(lost), quorum.restart(lacks))
        await quorum.elected()
        await create_in(quorum, "newest")
        await quorum.agreed()
        assert topics(quorum.nodes[lacks]) == {"old", "newest"}
        assert f"Continuing without the lost records: {accepted} exists" in caplog.text


async def test_a_leader_reports_a_voter_that_lacks_what_it_had(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The whole directory is an older copy: only the leader knows of the loss."""
    async with quorum_of(tmp_path, 3) as quorum:
        leader = await quorum.elected()
        lost = next(node.node_id for node in quorum.nodes if node is not leader)
        await create(leader, "old")
        await quorum.agreed()
        shutil.copytree(tmp_path / str(lost), tmp_path / "older")
        for number in range(5):
            await create(leader, f"new {number}".replace(" ", "-"))
        await quorum.agreed()
        await quorum.nodes[lost].kill()
        shutil.rmtree(tmp_path / str(lost))
        shutil.copytree(tmp_path / "older", tmp_path / str(lost))
        await quorum.restart(lost)
        await quorum.agreed()
        lost_records = f"voter {lost} lost records of the metadata log: it had acknowledged the records before offset"
        assert lost_records in caplog.text


def test_the_file_holds_the_last_position(tmp_path: Path) -> None:
    assert read_position(tmp_path) == LogPosition()
    file = PositionFile(tmp_path)
    for position in (LogPosition(3, 2, 1000, 10**18), LogPosition(4, 4, 7, 8)):
        file.write(position)
        assert read_position(tmp_path) == position
    file.clear(4)
    assert read_position(tmp_path) == LogPosition(term=4)
    file.close()
    assert len((tmp_path / POSITION_NAME).read_bytes()) == 96


@pytest.mark.parametrize("content", [b"", b"1 2 3\n", b"1 2 3 4 00000000\n", b"\xff" * 96])
def test_a_file_that_cannot_be_understood_proves_nothing(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / POSITION_NAME).write_bytes(content)
    assert read_position(tmp_path) == LogPosition()
    assert f"Replacing {tmp_path / POSITION_NAME}, which cannot be parsed" in caplog.text


@pytest.mark.parametrize(
    ("last_epoch", "end_offset", "is_lost"),
    [(3, 10, False), (3, 11, False), (4, 2, False), (3, 9, True), (2, 20, True)],
)
def test_a_log_is_compared_by_epoch_and_offset(tmp_path: Path, last_epoch: int, end_offset: int, is_lost: bool) -> None:
    position = LogPosition(5, 3, 7, 10)
    assert find_lost(tmp_path, position, last_epoch, end_offset) == (position if is_lost else LogPosition())
