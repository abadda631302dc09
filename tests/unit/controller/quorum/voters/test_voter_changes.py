"""A quorum whose voters the log names, over loopback: one more, one less, the leader, a lost disk, restarts."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from pybroker.metadata.features import SUPPORTED_FEATURES
from pybroker.protocol.errors import ErrorCode
from tests.support.quorums import Member, Members, members_of, until


async def elected(quorum: Members) -> Member:
    leader = await quorum.elected()
    assert isinstance(leader, Member)
    return leader


async def test_the_first_voters_are_those_that_the_directories_were_formatted_with(tmp_path: Path) -> None:
    async with members_of(tmp_path, 3) as quorum:
        leader = await elected(quorum)
        assert leader.voters == (0, 1, 2)
        await until(lambda: all(node.controller._voter.names_voters for node in quorum.nodes))
        state = leader.controller.quorum_state()
        assert [(one.node_id, one.directory_id) for one in state.voters] == [
            (one.node_id, one.directory_id) for one in quorum.first.voters
        ]


async def test_a_controller_joins_votes_and_outlives_the_first_one(tmp_path: Path) -> None:
    async with members_of(tmp_path, 1) as quorum:
        leader = await elected(quorum)
        second = await quorum.join(1)
        await until(lambda: second.voters == (0,))
        await quorum.agreed()
        assert [one.node_id for one in leader.controller.quorum_state().observers] == [1]
        result = await leader.channel.add_voter(second.as_voter, 5000)
        assert result.error_code is ErrorCode.NONE, result
        assert leader.voters == (0, 1)
        third = await quorum.join(2)
        assert (await leader.channel.add_voter(third.as_voter, 5000)).error_code is ErrorCode.NONE
        await until(lambda: second.voters == third.voters == (0, 1, 2))
        await leader.kill()
        assert await elected(quorum) in (second, third)


async def test_what_cannot_be_is_refused_in_kafkas_words(tmp_path: Path) -> None:
    async with members_of(tmp_path, 1) as quorum:
        leader = await elected(quorum)
        await until(lambda: leader.controller._voter.names_voters)
        own = leader.as_voter
        result = await leader.channel.add_voter(own, 1000)
        assert result.error_code is ErrorCode.DUPLICATE_VOTER
        assert (result.error_message or "").endswith(f"is already part of the set of voters [{own}].")
        stranger = own._replace(node_id=7, directory_id=b"7" * 16)
        result = await leader.channel.add_voter(stranger, 200)
        assert result.error_code is ErrorCode.REQUEST_TIMED_OUT
        assert "is lagging behind" in (result.error_message or "")
        result = await leader.channel.add_voter(stranger._replace(endpoints=()), 200)
        assert result.error_code is ErrorCode.INVALID_REQUEST
        result = await leader.channel.add_voter(stranger._replace(directory_id=bytes(16)), 200)
        assert (result.error_code, result.error_message) == (
            ErrorCode.INVALID_REQUEST,
            "Add voter request didn't include a valid voter",
        )
        result = await leader.channel.remove_voter(0, b"7" * 16)
        assert result.error_code is ErrorCode.VOTER_NOT_FOUND
        result = await leader.channel.remove_voter(0, own.directory_id)
        assert result.error_code is ErrorCode.INVALID_REQUEST
        assert leader.voters == (0,)


async def test_one_change_at_a_time(tmp_path: Path) -> None:
    async with members_of(tmp_path, 1) as quorum:
        leader = await elected(quorum)
        absent = leader.as_voter._replace(node_id=7, directory_id=b"7" * 16)
        both = leader.channel.add_voter(absent, 300), leader.channel.add_voter(absent, 300)
        _, second = await asyncio.gather(*both)
        assert second.error_message == "Request timed out waiting for leader to handle previous voter change request"


async def test_the_leader_is_removed_and_gives_way(tmp_path: Path) -> None:
    async with members_of(tmp_path, 3) as quorum:
        leader = await elected(quorum)
        await until(lambda: leader.controller._voter.names_voters)
        result = await leader.channel.remove_voter(leader.node_id, leader.settings.directory_id)
        assert result.error_code is ErrorCode.NONE, result
        await until(lambda: quorum.leader() not in (None, leader))
        other = await elected(quorum)
        assert leader.node_id not in other.voters
        assert len(other.voters) == 2
        await other.channel.register_broker(
            9,
            incarnation_id=b"i" * 16,
            listeners={"PLAINTEXT": ("h", 9092)},
            security_protocols={"PLAINTEXT": 0},
            features=SUPPORTED_FEATURES,
            fenced=False,
        )
        await quorum.agreed()
        assert leader.voters == other.voters


async def test_a_voter_whose_disk_was_lost_is_replaced(tmp_path: Path) -> None:
    async with members_of(tmp_path, 3) as quorum:
        leader = await elected(quorum)
        await until(lambda: leader.controller._voter.names_voters)
        lost = next(node for node in quorum.nodes if node is not leader)
        await lost.stop()
        shutil.rmtree(lost.settings.directory)
        fresh = await quorum.join(lost.node_id)
        await until(lambda: fresh.voters == (0, 1, 2))
        assert not fresh.controller._voter.votes, "another directory is another replica"
        result = await leader.channel.add_voter(fresh.as_voter, 5000)
        assert result.error_code is ErrorCode.DUPLICATE_VOTER
        result = await leader.channel.remove_voter(lost.node_id, lost.settings.directory_id)
        assert result.error_code is ErrorCode.NONE
        result = await leader.channel.add_voter(fresh.as_voter, 5000)
        assert result.error_code is ErrorCode.NONE, result
        await until(lambda: fresh.controller._voter.votes)
        assert leader.voters == (0, 1, 2)


async def test_a_quorum_of_two_that_became_one_needs_nobody_after_a_restart(tmp_path: Path) -> None:
    async with members_of(tmp_path, 2) as quorum:
        leader = await elected(quorum)
        await until(lambda: leader.controller._voter.names_voters)
        other = next(node for node in quorum.nodes if node is not leader)
        assert (await leader.channel.remove_voter(other.node_id, other.settings.directory_id)).error_code == 0
        await other.kill()
        await leader.kill()
        again = await quorum.again(leader)
        assert await elected(quorum) is again
        assert again.voters == (leader.node_id,)


async def test_a_quorum_of_one_that_became_two_finds_the_second_after_both_ended(tmp_path: Path) -> None:
    async with members_of(tmp_path, 1) as quorum:
        leader = await elected(quorum)
        second = await quorum.join(1)
        assert (await leader.channel.add_voter(second.as_voter, 5000)).error_code == 0
        await second.kill()
        await leader.kill()
        again = await quorum.again(leader)
        assert again.voters == (0, 1)
        assert not again.controller.is_leader
        late = await quorum.again(second)
        assert await elected(quorum) in (again, late)


async def test_a_voter_learns_its_membership_from_a_snapshot(tmp_path: Path) -> None:
    async with members_of(tmp_path, 1) as quorum:
        leader = await elected(quorum)
        second = await quorum.join(1)
        assert (await leader.channel.add_voter(second.as_voter, 5000)).error_code == 0
        controller = leader.controller
        await controller._take_snapshot(controller.image, controller._driver._applied)
        await quorum.agreed()
        for node in list(quorum.nodes):
            await node.kill()
        again, late = [await quorum.again(node) for node in list(quorum.nodes)]
        assert again.voters == (0, 1)
        assert await elected(quorum) in (again, late)
