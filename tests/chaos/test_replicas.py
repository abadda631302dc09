"""Replicas of a partition are compared batch by batch, whatever their segments."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.chaos.replicas import differences


def batch(offset: int, body: bytes) -> bytes:
    return struct.pack(">qi", offset, len(body)) + body


def replica(directory: Path, *segments: bytes) -> Path:
    directory.mkdir()
    for number, data in enumerate(segments):
        (directory / f"{number:020}.log").write_bytes(data)
    return directory


def test_the_same_batches_in_other_segments_are_no_difference(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", batch(0, b"a") + batch(5, b"b"))
    other = replica(tmp_path / "2", batch(0, b"a"), batch(5, b"b"))
    assert differences({1: one, 2: other}) == []


def test_a_removed_beginning_is_no_difference(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", batch(0, b"a"), batch(5, b"b"))
    other = replica(tmp_path / "2", batch(5, b"b"))
    assert differences({1: one, 2: other}) == []


def test_a_missing_batch_another_byte_and_an_empty_log_are_differences(tmp_path: Path) -> None:
    whole = replica(tmp_path / "1", batch(0, b"a") + batch(5, b"b"))
    short = replica(tmp_path / "2", batch(0, b"a"))
    other = replica(tmp_path / "3", batch(0, b"a") + batch(5, b"c"))
    empty = replica(tmp_path / "4")
    (missing,) = differences({1: whole, 2: short})
    assert "offset 5" in missing
    assert "missing on broker 2" in missing
    (differs,) = differences({1: whole, 3: other})
    assert "offset 5" in differs
    (none,) = differences({1: whole, 4: empty})
    assert "[4] have an empty log" in none
