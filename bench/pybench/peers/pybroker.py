"""pybroker as a process: `pybroker start`, default settings, loopback, a port chosen by the system.

Owns the node's directory and process, with the same interface as `pybench.peers.kafka.Kafka`.
"""

from __future__ import annotations

import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from pybench.peers.errors import StartError
from pybench.peers.server_log import SERVER_LOG, log_tail


class Pybroker:
    """One pybroker node from `start` to `stop`. Removes its directory unless the caller provided it."""

    def __init__(
        self,
        directory: Path | None = None,
        overrides: Mapping[str, str] | None = None,
        *,
        beside: str = "",
        ready_timeout_s: float = 60,
    ) -> None:
        """`beside` is an additional listener such as `SSL://127.0.0.1:9094`."""
        self._beside = f",{beside}" if beside else ""
        self._keep = directory is not None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="pybroker-peer-"))
        self._overrides = dict(overrides or {})
        self._ready_timeout_s = ready_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self.bootstrap_servers = ""

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        if self._process is None:
            raise StartError("this pybroker node is not running")
        return self._process.pid

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of its processes: one."""
        return (self.pid,)

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """The only log directory."""
        return (self.log_directory,)

    @property
    def log_directory(self) -> Path:
        """The log directory."""
        return self.directory / "data"

    @property
    def command(self) -> list[str]:
        """The command line that starts the node."""
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:0{self._beside}",
            "log.dirs": str(self.log_directory),
            **self._overrides,
        }
        program = Path(sys.executable).with_name("pybroker")
        return [str(program), "start", *(f"--override={key}={value}" for key, value in settings.items())]

    def start(self) -> Self:
        """Start the node, and return when it reports that it is ready. Raises StartError."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / SERVER_LOG).open("ab") as log:
            self._process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        self.bootstrap_servers = self._wait_for_ready_line()
        return self

    def stop(self) -> None:
        """Stop the node by SIGTERM to its process id (SIGKILL after 30 s). Removes its directory if it created it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None
        if not self._keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def kill(self) -> None:
        """Kill the node by SIGKILL. Unsynced data remains in the page cache or is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_for_ready_line(self) -> str:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        said, deadline = b"", time.monotonic() + self._ready_timeout_s
        while (left := deadline - time.monotonic()) > 0:
            # Not `select`: a test's process may have more than 1,024 files open.
            poll = select.poll()
            poll.register(process.stdout, select.POLLIN)
            if not poll.poll(left * 1000):
                break
            chunk = process.stdout.read1(4096)  # type: ignore[attr-defined]  # stdout is a BufferedReader
            said += chunk
            if found := re.search(rb"ready: \w+://([^\s,]+)", said):
                return found[1].decode()
            if not chunk:
                break
        status = process.poll()
        raise StartError(f"pybroker was not ready (status {status}): {said.decode()}\n{log_tail(self.directory)}")
