"""The file of `--reset-offsets --from-file`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.cli.consumer_groups_reset import read_plan
from pybroker.cli.errors import CommandError
from pybroker.client.administration.topics import TopicPartition


def test_rows_name_offsets_and_may_leave_out_the_only_group(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_bytes(b"t,0,5\r\nother,t,1,7\n")
    assert read_plan(file, ["g"]) == {"g": {TopicPartition("t", 0): 5}, "other": {TopicPartition("t", 1): 7}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "cannot read {path}: not UTF-8 at byte 0"),
        (b"t,0," + b"1" * 200_000, "cannot read {path}: field larger than field limit"),
        (b"t,0," + b"1" * 5_000, "{path}: line 1 must read [group,]topic,partition,offset"),
        (b"t,0,1\nt,0,-1\n", "{path}: line 2 must read [group,]topic,partition,offset"),
    ],
)
def test_a_file_that_makes_no_sense_is_reported(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "plan.csv"
    file.write_bytes(content)
    with pytest.raises(CommandError) as refusal:
        read_plan(file, ["g"])
    assert str(refusal.value).startswith(words.format(path=file))


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"cannot read .*/plan\.csv: No such file"):
        read_plan(tmp_path / "plan.csv", ["g"])
