"""The server that only receives and writes to a file (`bench/cclient/sink.c`): the upper limit of broker throughput.

Owns its process and directory, with the same interface as `pybench.peers.kafka.Kafka`. It has no topics: every
requested topic name has one partition.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from pybench.peers.c_program import build_c_program
from pybench.peers.errors import StartError


class Sink:
    """A context manager that runs the server."""

    def __init__(self, directory: Path) -> None:
        self.log_directory = directory
        self._process: subprocess.Popen[str] | None = None
        self.bootstrap_servers = ""

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise StartError("the sink is not running")
        return self._process.pid

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of its processes: one."""
        return (self.pid,)

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """The only log directory."""
        return (self.log_directory,)

    def __enter__(self) -> Self:
        self.log_directory.mkdir(parents=True, exist_ok=True)
        words = [str(build_c_program()), "sink", "-d", str(self.log_directory)]
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said.startswith("ready: "):
            self.__exit__(None, None, None)
            raise StartError(f"the sink said {said!r} where its address was expected")
        self.bootstrap_servers = said.strip().rpartition("/")[2]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None
