"""The vote survives a restart, whole, in Kafka's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybroker.controller.errors import QuorumStateError
from pybroker.controller.quorum.log.hard_state import FILE_NAME, HardState, read_hard_state, write_hard_state


def test_without_a_file_there_is_no_state(tmp_path: Path) -> None:
    assert read_hard_state(tmp_path) is None


@pytest.mark.parametrize("state", [HardState(3, 1), HardState(0, None), HardState(7, 0)])
def test_a_state_is_read_back(tmp_path: Path, state: HardState) -> None:
    write_hard_state(tmp_path, HardState(1, 9), None, [1])
    write_hard_state(tmp_path, state, 1, [1, 2])
    assert read_hard_state(tmp_path) == state
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_the_file_is_kafkas_data_version_0(tmp_path: Path) -> None:
    write_hard_state(tmp_path, HardState(3, 1), 1, [1])
    assert json.loads((tmp_path / FILE_NAME).read_text()) == {
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 3,
        "votedId": 1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}],
        "data_version": 0,
    }


@pytest.mark.parametrize("key", [2, (5 << 32) | 2])
def test_who_voted_for_itself_and_lost_is_no_candidate_for_kafka(tmp_path: Path, key: int) -> None:
    write_hard_state(tmp_path, HardState(3, key), None, [1, 2])
    assert json.loads((tmp_path / FILE_NAME).read_text())["votedId"] == 2
    write_hard_state(tmp_path, HardState(3, key), 1, [1, 2])
    fields = json.loads((tmp_path / FILE_NAME).read_text())
    assert (fields["leaderId"], fields["votedId"]) == (1, -1)
    assert read_hard_state(tmp_path) == HardState(3, key), "the vote is given, and given once"


def test_a_newer_data_version_of_kafka_is_understood(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(
        '{"leaderId":1,"leaderEpoch":5,"votedId":1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    assert read_hard_state(tmp_path) == HardState(5, 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON: "),
        (b"{", "not JSON: "),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b'{"data_version":0,"clusterId":"\x80"}', "not UTF-8 at byte 31"),
        (b"[]", "not a JSON object"),
        (b"{}", "expected data_version 0 or 1"),
        (b'{"data_version":9,"leaderEpoch":1,"votedId":1}', "expected data_version 0 or 1"),
        (b'{"data_version":0,"leaderEpoch":-1,"votedId":1}', "expected leaderEpoch, an integer from 0 to 2147483647"),
        (b'{"data_version":0,"leaderEpoch":2147483648,"votedId":1}', "expected leaderEpoch, "),
        (b'{"data_version":0,"leaderEpoch":1}', "expected votedId, an integer from -1 to 2147483647"),
        (b'{"data_version":0,"leaderEpoch":1,"votedId":true}', "expected votedId, "),
        (b'{"data_version":0,"leaderEpoch":1,"votedId":1,"votedKey":"1"}', "expected votedKey, "),
        (b'{"data_version":0,"leaderEpoch":1,"votedId":1,"appliedOffset":-1}', "expected appliedOffset, "),
    ],
)
def test_a_damaged_state_is_refused_with_its_path_and_a_remedy(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(QuorumStateError, match=f"^{tmp_path / FILE_NAME} is damaged: {words}") as refused:
        read_hard_state(tmp_path)
    assert "restore the file from a backup" in str(refused.value)


@pytest.mark.parametrize("vote", [-1, 0, 7])
def test_a_state_without_a_voted_key_has_kafkas_voted_id(tmp_path: Path, vote: int) -> None:
    (tmp_path / FILE_NAME).write_text(f'{{"data_version":0,"leaderEpoch":1,"votedId":{vote}}}')
    assert read_hard_state(tmp_path) == HardState(1, None if vote == -1 else vote)


def test_a_write_that_was_cut_short_leaves_the_old_state(tmp_path: Path) -> None:
    write_hard_state(tmp_path, HardState(3, 1), 1, [1])
    (tmp_path / f"{FILE_NAME}.tmp").write_text('{"leaderE')
    assert read_hard_state(tmp_path) == HardState(3, 1)
    write_hard_state(tmp_path, HardState(4, 1), 1, [1])
    assert read_hard_state(tmp_path) == HardState(4, 1)
