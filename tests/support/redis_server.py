"""A Redis server on a free port, without files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.support import programs
from tests.support.conditions import wait_until
from tests.support.processes import free_port


class RedisServer:
    """One `redis-server` at an address that stays the same over restarts. It loses its keys when it stops."""

    def __init__(self, directory: Path) -> None:
        """Start the server."""
        self._directory = directory
        self.port = free_port()
        self.start()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def client(self) -> redis.Redis:
        """Return a client; the caller closes it."""
        return redis.Redis(port=self.port, decode_responses=True)

    def start(self) -> None:
        """Start the process, and wait until it accepts commands."""
        words = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._directory))
        self._process = subprocess.Popen(
            [programs.program("redis-server"), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(self._responds, within=60, what="redis-server responds")

    def _responds(self) -> bool:
        assert self._process.poll() is None, f"redis-server ended with status {self._process.returncode}"
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False

    def stop(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()


@contextmanager
def redis_server(directory: Path) -> Iterator[RedisServer]:
    """Yield a server that is stopped at the end."""
    server = RedisServer(directory)
    try:
        yield server
    finally:
        server.stop()
