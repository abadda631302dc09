"""Several voters over loopback: who leads, what is committed, and what becomes of it when one of them ends."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from pybroker.controller import service
from pybroker.controller.cluster.events import NewTopic
from pybroker.controller.errors import NotControllerError
from pybroker.controller.quorum import driver
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log import first_records
from pybroker.controller.quorum.log.hard_state import FILE_NAME
from pybroker.controller.quorum.snapshot.snapshot_policy import SnapshotPolicy
from pybroker.controller.quorum.transport.peers import PeerAddress
from pybroker.controller.quorum.voter import SnapshotMark
from pybroker.metadata.features import INITIAL_LEVELS, SUPPORTED_FEATURES, TRANSACTION_VERSION
from pybroker.protocol.errors import ErrorCode
from tests.support.quorums import Node, QuorumOf, quorum_of, until


async def create(node: Node, name: str) -> None:
    """A topic, by the node that leads."""
    if not node.controller.image.cluster.brokers:
        await node.channel.register_broker(
            1,
            incarnation_id=b"i" * 16,
            listeners={"PLAINTEXT": ("h", 9092)},
            security_protocols={"PLAINTEXT": 0},
            features=SUPPORTED_FEATURES,
            fenced=False,
        )
    (created,) = await node.channel.create_topics([NewTopic(name=name, num_partitions=1, replication_factor=1)])
    assert created.error_code is ErrorCode.NONE, created


async def create_in(quorum: QuorumOf, name: str) -> Node:
    """A topic, by the leader of the moment: a loop that stood still may have cost one its term. Returns who made it."""
    async with asyncio.timeout(60):
        while True:
            leader = await quorum.elected()
            try:
                await create(leader, name)
            except NotControllerError:
                continue
            return leader


def topics(node: Node) -> set[str]:
    return set(node.controller.image.topics.by_name)


async def test_one_of_three_leads_and_the_others_follow(tmp_path: Path) -> None:
    async with quorum_of(tmp_path, 3) as quorum:
        leader = await quorum.elected()
        await create(leader, "t")
        await quorum.agreed()
        others = [node for node in quorum.nodes if node is not leader]
        assert [topics(node) for node in others] == [{"t"}, {"t"}]
        assert all(node.channel.leader_id == leader.node_id for node in quorum.nodes)
        with pytest.raises(NotControllerError, match="does not lead"):
            await create(others[0], "u")
        state = leader.controller.quorum_state()
        assert [voter.node_id for voter in state.voters] == [0, 1, 2]
        assert all(voter.last_fetch_ms > 0 for voter in state.voters)
        assert leader.leads == [True]


async def test_the_file_of_a_leader_names_it_before_its_log_has_entries_of_its_epoch(tmp_path: Path) -> None:
    """Kafka takes who has voted for itself and names no leader for a candidate, and ends itself over such a log."""
    async with quorum_of(tmp_path, 3) as quorum:
        leader = await quorum.elected()
        await quorum.agreed()
        files = [tmp_path / str(number) / DIRECTORY_NAME / FILE_NAME for number in range(3)]
        await until(lambda: json.loads(files[leader.node_id].read_text())["leaderId"] == leader.node_id)
        for number, state in enumerate(json.loads(file.read_text()) for file in files):
            assert state["leaderId"] >= 0 or state["votedId"] != number


async def test_after_the_end_of_the_leader_another_one_has_all_that_was_answered(tmp_path: Path) -> None:
    async with quorum_of(tmp_path, 3) as quorum:
        for number in range(5):
            dead = await create_in(quorum, f"t{number}")
        await dead.kill()
        leader = await quorum.elected()
        assert leader is not dead
        assert topics(leader) == {f"t{number}" for number in range(5)}
        await create_in(quorum, "after")
        again = await quorum.restart(dead.node_id)
        await quorum.agreed()
        assert topics(again) == topics(leader) == {*(f"t{number}" for number in range(5)), "after"}
        assert not again.failures


async def test_a_later_leader_of_several_voters_raises_no_level(tmp_path: Path) -> None:
    older = {name: level for name, level in INITIAL_LEVELS.items() if name != TRANSACTION_VERSION}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_records, "INITIAL_LEVELS", older)
        quorum = QuorumOf(tmp_path, 3)
        await quorum.start()
        first = await create_in(quorum, "t")
    try:
        await first.kill()
        second = await create_in(quorum, "u")
        assert (second is not first, second.controller.image.features.levels) == (True, older)
    finally:
        for node in quorum.nodes:
            if node.is_running:
                await node.stop()


async def test_a_leader_that_stops_hands_over(tmp_path: Path) -> None:
    """Its successor leads in the next epoch, or the third voter in the one after it.

    The third voter stands for election as soon as the leader's connection ends, if it has no request of the successor
    yet: which of both is first is a matter of the machine. The votes of a voter that lost records (ADR 0102) add no
    election: they differ only while its log ends before what it has acknowledged, and no log does here.
    """
    async with quorum_of(tmp_path, 3, fetch_timeout_ms=60_000) as quorum:
        first = await quorum.elected()
        epoch = first.controller.leader_epoch
        await first.stop()
        second = await quorum.elected()
        assert second.controller.leader_epoch - epoch in (1, 2)
        assert first.leads == [True, False]


async def test_a_stop_waits_for_no_successor_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_HAND_OVER_S", 3600)
    async with quorum_of(tmp_path, 3, fetch_timeout_ms=3_600_000) as quorum:
        await quorum.elected()
        await asyncio.gather(*(node.stop() for node in quorum.nodes))
        assert not any(node.controller.is_leader for node in quorum.nodes)


async def test_a_leader_that_stands_still_takes_no_proposal_that_nobody_would_commit(tmp_path: Path) -> None:
    async with quorum_of(tmp_path, 1) as quorum:
        leader = await quorum.elected()
        await leader.stop()
        with pytest.raises(NotControllerError, match="does not lead"):
            leader.controller._driver.propose([], None)


async def test_a_voter_that_was_away_for_long_gets_what_it_missed_from_the_disk_of_the_leader(tmp_path: Path) -> None:
    quorum = QuorumOf(tmp_path, 3)
    await quorum.start(0, 1)
    for number in range(3):
        leader = await create_in(quorum, f"t{number}")
    await leader.stop()
    await quorum.restart(leader.node_id)  # nothing of the log is in memory now but what follows the start
    await quorum.start(2)
    await create_in(quorum, "after")
    await quorum.agreed()
    assert topics(quorum.nodes[2]) == {"t0", "t1", "t2", "after"}
    for node in quorum.nodes:
        await node.stop()


async def test_a_leader_without_the_others_answers_nobody_and_gives_up(tmp_path: Path) -> None:
    async with quorum_of(tmp_path, 3) as quorum:
        leader = await quorum.elected()
        await create(leader, "t")
        for node in quorum.nodes:
            if node is not leader:
                await node.kill()
        with pytest.raises(NotControllerError):
            await create(leader, "lost")
        assert leader.leads == [True, False]
        for node in list(quorum.nodes):
            if node is not leader:
                await quorum.restart(node.node_id)
        await create_in(quorum, "later")
        await quorum.agreed()
        assert all({"t", "later"} <= topics(node) for node in quorum.nodes)


async def test_all_end_at_once_and_what_was_answered_is_there(tmp_path: Path) -> None:
    async with quorum_of(tmp_path, 3) as quorum:
        await create_in(quorum, "t")
        for node in quorum.nodes:
            await node.kill()
        for node in list(quorum.nodes):
            await quorum.restart(node.node_id)
        leader = await quorum.elected()
        assert topics(leader) == {"t"}


async def test_what_is_committed_can_be_read_and_waited_for(tmp_path: Path) -> None:
    async with quorum_of(tmp_path, 3) as quorum:
        leader = await quorum.elected()
        await create(leader, "t")
        await quorum.agreed()
        one = leader.controller
        whole = one.read(0, 1 << 20)
        assert whole
        await until(lambda: all(node.controller.committed_offset == one.committed_offset for node in quorum.nodes))
        assert all(node.controller.read(0, 1 << 20) == whole for node in quorum.nodes), "logs are the same byte by byte"
        assert one.read(one.committed_offset, 100) == b""
        waiting = asyncio.ensure_future(one.wait_committed(one.committed_offset))
        await asyncio.wait_for(one.wait_committed(0), 1)
        await create(leader, "u")
        await waiting
        assert len(one.read(0, 1)) < len(whole)


async def test_a_voter_that_needs_what_no_log_has_any_more_gets_the_snapshot(tmp_path: Path) -> None:
    often = SnapshotPolicy(bytes_between=500, interval_ms=0, retention_bytes=1, retention_ms=-1)
    quorum = QuorumOf(tmp_path, 3, snapshots=often)
    await quorum.start(0, 1)
    leader = await quorum.elected()
    for number in range(12):
        await create(leader, f"t{number}")
    await until(lambda: leader.controller._voter.log.start_offset > 0)
    late = quorum.nodes[2]
    own = late.settings.directory / DIRECTORY_NAME

    async def fetch(snapshot: SnapshotMark, voter: PeerAddress) -> None:
        theirs = quorum.nodes[voter.node_id].settings.directory / DIRECTORY_NAME
        path = shutil.copy(theirs / snapshot.id.file_name, own)
        late.controller._fetched = snapshot, service._image_in(Path(path))

    late.controller._fetch = fetch  # type: ignore[method-assign,assignment]
    await quorum.start(2)
    await until(lambda: topics(late) == topics(leader))
    await create(leader, "after")
    await quorum.agreed()
    assert late.controller.image.topics == leader.controller.image.topics
    await late.stop()
    again = await quorum.restart(2)
    await until(lambda: topics(again) == topics(leader))
    for node in quorum.nodes:
        await node.stop()
    assert not any(node.failures for node in quorum.nodes)
