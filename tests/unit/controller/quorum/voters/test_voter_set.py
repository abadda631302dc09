"""Voters as a value: keys, Kafka's record, one change at a time."""

from __future__ import annotations

import pytest

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.voters.voter_set import (
    KRAFT_VERSIONS,
    NO_DIRECTORY,
    VoterEndpoint,
    VoterNode,
    VoterSet,
    key_of,
    node_of,
)
from pybroker.protocol.messages.records.voters import Voter, VotersRecord

ONE = VoterNode(1, b"1" * 16, (VoterEndpoint("CONTROLLER", "h", 9093),), KRAFT_VERSIONS)
TWO = ONE._replace(node_id=2, directory_id=b"2" * 16)


@pytest.mark.parametrize("node_id", [0, 1, 2**31 - 1])
@pytest.mark.parametrize("directory_id", [NO_DIRECTORY, b"\0" * 15 + b"\1", b"\xff" * 16, b"abcdefghijklmnop"])
def test_a_key_has_the_node_id_and_tells_directories_apart(node_id: int, directory_id: bytes) -> None:
    key = key_of(node_id, directory_id)
    assert node_of(key) == node_id
    assert 0 <= key < 2**63
    assert (key == node_id) == (directory_id == NO_DIRECTORY)


def test_a_set_is_what_its_record_says() -> None:
    voters = VoterSet.of([TWO, ONE])
    assert voters.node_ids == (1, 2)
    assert VoterSet.from_record(voters.to_record()) == voters


@pytest.mark.parametrize("ids", [[], [1, 1], [-1]], ids=str)
def test_a_record_that_no_quorum_can_have_is_refused(ids: list[int]) -> None:
    with pytest.raises(MetadataLogError, match="expected one or more, each once"):
        VoterSet.from_record(VotersRecord(voters=[Voter(voter_id=node_id) for node_id in ids]))


def test_one_voter_more_one_less_and_another_address() -> None:
    alone = VoterSet.of([ONE])
    assert alone.with_voter(TWO).without(2) == alone
    moved = ONE._replace(endpoints=(VoterEndpoint("CONTROLLER", "elsewhere", 1),))
    assert alone.with_voter(moved).find(1) == moved
    assert not alone.has(key_of(1, b"another directory"[:16]))


def test_a_voter_is_reached_by_the_listener_of_a_name_or_by_its_first() -> None:
    other = VoterEndpoint("OTHER", "h", 1)
    voter = ONE._replace(endpoints=(other, *ONE.endpoints))
    assert voter.endpoint("CONTROLLER") == ONE.endpoints[0]
    assert voter.endpoint("NONE") == other
    assert ONE._replace(endpoints=()).endpoint() is None


def test_voters_are_named_in_the_words_of_kafkas_messages() -> None:
    assert str(VoterSet.of([VoterNode(7)])) == "[ReplicaKey(id=7, directoryId=<undefined>)]"
    assert str(ONE) == "ReplicaKey(id=1, directoryId=MTExMTExMTExMTExMTExMQ)"
