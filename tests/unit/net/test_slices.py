from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from pybroker.net import slices


def _shown() -> str | None:
    """The slice of the calling thread in ns, where the kernel shows it."""
    lines = Path(f"/proc/self/task/{threading.get_native_id()}/sched").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("se.slice")), None)


def test_a_thread_takes_its_slice() -> None:
    seen: list[str | None] = []

    def run() -> None:
        slices.take_slice()
        seen.append(_shown())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    # Kernels before 6.12 take it and do nothing, or show none.
    release = Path("/proc/sys/kernel/osrelease").read_text().split(".")
    if (int(release[0]), int(release[1])) >= (6, 12):
        assert seen == ["1000000"]
    assert len(seen) == 1


def test_a_system_that_forbids_it_has_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def forbidden(us: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(slices, "set_thread_slice", forbidden)
    with caplog.at_level(logging.INFO, "pybroker.net"):
        slices.take_slice()
    assert caplog.messages == [
        "Failed to set a scheduler slice of 1000 µs for the Python thread: Operation not permitted"
    ]
