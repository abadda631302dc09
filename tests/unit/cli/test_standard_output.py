from __future__ import annotations

import errno
import io
import os
from pathlib import Path

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
    assert standard_output.says_full(OSError(errno.ENOSPC, "No space left on device"))
    assert not standard_output.says_full(OSError(errno.ENOSPC, "No space left on device", "a file"))
    assert not standard_output.says_full(FileNotFoundError(errno.ENOENT, "No such file or directory"))
