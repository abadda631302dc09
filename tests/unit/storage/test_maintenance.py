from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.topic import TopicConfig
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.storage.log_config import build_log_config
from pybroker.storage.log_dirs.directories import Directories
from pybroker.storage.maintenance import Maintenance
from pybroker.storage.partitions import Partitions
from tests.support.partitions import open_one


class Run:
    """The maintenance of two log directories."""

    def __init__(self, root: Path) -> None:
        self.paths = [root / "a", root / "b"]
        self.config = BrokerConfig({"log.dirs": ",".join(map(str, self.paths))})
        self.directories = Directories.acquire(self.paths, self.paths[0], 1)
        self.directories.format(1)
        self.partitions = Partitions(self.directories, lambda: 0)
        self.partitions.scan()
        self.workers = ThreadPoolExecutor(2)
        self.moved: asyncio.Queue[str] = asyncio.Queue()
        self.maintenance = Maintenance(
            self.partitions,
            self.directories,
            self.workers,
            SYSTEM_CLOCK,
            config_of=lambda: self.config,
            settings_of=lambda _topic: TopicConfig({}, self.config),
            log_files=100,
            directory_failed=lambda _path, _error: None,
            moved=self.moved.put_nowait,
        )

    def open(self, topic: str) -> None:
        config = build_log_config(TopicConfig({}, self.config))
        open_one(self.partitions, topic, 0, os.urandom(16), config)


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    made = Run(tmp_path)
    yield made
    await made.maintenance.end()
    made.workers.shutdown()
    made.directories.release()


async def test_a_topic_of_which_a_log_was_moved_is_reported_on_the_loop(run: Run) -> None:
    run.open("orders")
    await run.maintenance.begin()
    here = run.partitions.directory_of("orders", 0)
    (other,) = (path for path in run.paths if path != here)
    await asyncio.to_thread(run.maintenance.moves.request, "orders", 0, str(other))
    assert await asyncio.wait_for(run.moved.get(), 60) == "orders"
    assert run.partitions.directory_of("orders", 0) == other


async def test_a_log_that_rolled_is_flushed_before_the_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, flushed = threading.Event(), []

    def flush(topic: str, index: int) -> None:
        goes_on.wait(60)
        flushed.append((topic, index))

    monkeypatch.setattr(run.partitions, "flush", flush)
    run.maintenance.flush_rolled("orders", 3)
    waiting = asyncio.ensure_future(run.maintenance.flushed())
    assert flushed == []
    goes_on.set()
    await asyncio.wait_for(waiting, 60)
    assert flushed == [("orders", 3)]


@pytest.mark.parametrize("ends_first", [False, True])
async def test_what_has_not_begun_before_the_end_is_not_done(
    run: Run, ends_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    due: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
    done = threading.Event()
    monkeypatch.setattr(SYSTEM_CLOCK, "call_later", lambda _delay_s, work: due.put_nowait(work))
    run.maintenance.retention._later(60_000, done.set)
    work = await asyncio.wait_for(due.get(), 60)
    if ends_first:
        await run.maintenance.end()
    work()
    run.workers.shutdown()
    assert done.is_set() is not ends_first
