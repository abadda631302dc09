"""What the allocator of a broker's own process keeps of large buffers that were freed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pybroker.net import allocator

PROGRAM = """
import sys
from pathlib import Path
from pybroker.net import allocator

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if sys.argv[1] == "fixed":
    allocator.fix_thresholds()
before = resident()
for mebibytes in (10, 20, 30):  # the first that is freed moves the thresholds, where they move
    b"x" * (mebibytes << 20)
large, small = [], []
for _ in range(4):  # a small block after a large one keeps that from being the end of the heap
    large.append(b"x" * (20 << 20))
    small.append(b"x" * (64 << 10))
del large
print((resident() - before) >> 20)
"""


def kept_mebibytes(how: str) -> int:
    program = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return int(program.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other allocators")
def test_large_buffers_leave_the_process_when_they_are_freed() -> None:
    assert kept_mebibytes("fixed") < 20


def test_a_refused_threshold_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    class Library:
        @staticmethod
        def mallopt(_parameter: int, _value: int) -> int:
            return 0

    monkeypatch.setattr("ctypes.CDLL", lambda _name: Library)
    allocator.fix_thresholds()
    assert "Failed to set malloc thresholds" in caplog.text


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _name: object())
    allocator.fix_thresholds()
    assert not caplog.text
