from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from pybroker.cli import standard_output


def pipe() -> tuple[int, io.TextIOWrapper]:
    """Where a pipe is read, and what is written to it."""
    reading, writing = os.pipe()
    return reading, io.TextIOWrapper(io.BufferedWriter(io.FileIO(writing, "w")))


def test_a_pipe_has_failed_when_its_reader_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, out = pipe()
    with out, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", out)
        before = standard_output.has_failed()
        os.close(reading)
        assert (before, standard_output.has_failed()) == (False, True)


def test_what_is_written_after_the_failure_goes_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, out = pipe()
    os.close(reading)
    with out, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", out)
        out.write("lost")
        with pytest.raises(BrokenPipeError):
            standard_output.flush()
        standard_output.abandon()
        out.write("lost, too")


class CountedWrites(io.RawIOBase):
    """Output that is not buffered, as under PYTHONUNBUFFERED=1."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.writes.append(bytes(data))
        return len(data)


def test_a_line_and_its_end_are_one_write_where_output_is_not_buffered(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = CountedWrites()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(cast("BinaryIO", raw), write_through=True))
    assert standard_output.write_line("ready") is None
    assert raw.writes == [b"ready\n"]


def test_a_line_that_cannot_be_written_is_reported_and_later_ones_are_discarded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, out = pipe()
    os.close(reading)
    with out, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", out)
        assert isinstance(standard_output.write_line("ready"), BrokenPipeError)
        assert standard_output.write_line("later") is None


def test_a_full_disk_is_found_by_what_is_buffered(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        full.write("lost")
        assert standard_output.has_failed()
        standard_output.abandon()


def test_no_output_at_all_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert not standard_output.has_failed()
    standard_output.abandon()


def test_a_write_without_room_differs_from_other_failures() -> None:
    assert standard_output.is_disk_full(OSError(errno.ENOSPC, "No space left on device"))
    assert not standard_output.is_disk_full(OSError(errno.ENOSPC, "No space left on device", "a file"))
    assert not standard_output.is_disk_full(FileNotFoundError(errno.ENOENT, "No such file or directory"))
