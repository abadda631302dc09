"""Broker processes on directories of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.processes import BrokerProcess


@contextmanager
def small_file_system(where: Path, mebibytes: int) -> Iterator[Path]:
    """Mount a tmpfs of `mebibytes` MiB at `where`. Skips the test if that is not permitted."""
    if os.geteuid() != 0:
        programs.lacking("mounting a small file system needs root: run the tests as root")
    programs.program("mount")
    where.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(where)]
    mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        programs.lacking(f"mounting a small file system is not allowed: {mounted.stderr.strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", where], check=True)


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """A factory of broker processes that are not started. All are killed at the end of the test."""
    with ExitStack() as stack:

        def make(directory: Path = tmp_path / "data", **overrides: str) -> BrokerProcess:
            broker = BrokerProcess(directory, {key.replace("_", "."): value for key, value in overrides.items()})
            stack.push(broker)
            return broker

        yield make


@pytest.fixture
def broker(make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """A running broker with default settings."""
    return make_broker().start()
