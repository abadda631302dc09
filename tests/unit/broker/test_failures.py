from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from pybroker.broker.failures import BrokerFailedError, Failures
from pybroker.storage.log_dirs.directories import Directories


class Run:
    """Failures of a broker with two log directories, the first of which has the metadata."""

    def __init__(self, root: Path) -> None:
        paths = [root / "a", root / "b"]
        self.directories = Directories.acquire(paths, paths[0], 1)
        self.failures = Failures(self.directories)
        self.calls: list[str] = []
        self.failures.on_lost_directory(self._lose)
        self.failures.on_survived(lambda: self.calls.append("survived"))

    def _lose(self, path: str) -> None:
        self.calls.append(Path(path).name)
        (lost,) = (directory for directory in self.directories.logs if str(directory.path) == path)
        lost.offline = True


@pytest.fixture
async def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


async def test_a_broker_survives_a_directory_that_is_not_the_last(run: Run, tmp_path: Path) -> None:
    run.failures.lose_directory(str(tmp_path / "b"), "Input/output error")
    assert run.calls == ["b", "survived"]


async def test_without_the_metadata_directory_it_ends(run: Run, tmp_path: Path) -> None:
    run.failures.lose_directory(str(tmp_path / "a"), "Input/output error")
    assert run.calls == ["a"]
    assert await run.failures.reason() == f"log directory {tmp_path / 'a'} failed: Input/output error"


async def test_a_start_is_refused_when_the_broker_cannot_continue(run: Run, tmp_path: Path) -> None:
    run.failures.lose_directory(str(tmp_path / "b"), "Input/output error")
    run.failures.check()
    run.failures.lose_directory(str(tmp_path / "a"), "Input/output error")
    with pytest.raises(BrokerFailedError, match=f"^log directory {tmp_path / 'a'} failed: Input/output error$"):
        run.failures.check()


async def test_the_first_reason_counts(run: Run) -> None:
    run.failures.end("the metadata log failed")
    run.failures.end("something else")
    assert await run.failures.reason() == "the metadata log failed"


async def test_a_thread_reports_a_directory_to_the_loop(run: Run, tmp_path: Path) -> None:
    thread = threading.Thread(target=run.failures.report_directory, args=(tmp_path / "a", OSError(5, "broken")))
    thread.start()
    thread.join()
    assert run.calls == []
    assert "broken" in await asyncio.wait_for(run.failures.reason(), 60)


async def test_parts_that_have_ended_are_not_called(run: Run, tmp_path: Path) -> None:
    run.failures.stop()
    run.failures.lose_directory(str(tmp_path / "b"), "Input/output error")
    assert run.calls == []
