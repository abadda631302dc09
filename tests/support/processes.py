"""Broker processes: started by the console script, ended by their id, inspected through /proc.

When the context of a process ends, the process is killed and reaped, whatever the test did.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from pybench.peers.free_ports import free_ports

PROGRAM = Path(sys.executable).with_name("pybroker")
READY = re.compile(r"ready: \w+://([\d.]+:\d+)")
START_SECONDS = 60
STOP_SECONDS = 60


class NotStartedError(AssertionError):
    """The broker ended before it was ready. `status` is its exit status, `log` its output."""

    def __init__(self, status: int, log: str) -> None:
        super().__init__(f"the broker ended with status {status} before it was ready:\n{log}")
        self.status = status
        self.log = log


def free_port() -> int:
    """Return a loopback port without a listener, outside the range for outgoing connections."""
    (port,) = free_ports(1)
    return port


class BrokerProcess:
    """One `pybroker start` on a directory and a port that stay the same over restarts.

    The log (standard error) of all runs is appended to `<directory>.log` beside the data.
    """

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        before_exec: Callable[[], None] | None = None,
        program: Path = PROGRAM,
    ) -> None:
        self.directory = directory
        self.port = free_port() if port is None else port
        self.log_path = directory.with_name(directory.name + ".log")
        self._overrides = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(directory),
            **(overrides or {}),
        }
        self._before_exec = before_exec
        self._program = program
        self._process: subprocess.Popen[str] | None = None

    def _prepare(self) -> None:
        # Under nohup the process would inherit an ignored SIGHUP.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        if self._before_exec is not None:
            self._before_exec()

    @property
    def bootstrap_servers(self) -> str:
        """The address of the listener."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The id of the running process."""
        return self._running().pid

    @property
    def log(self) -> str:
        """Return the log of all runs so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def start(self) -> Self:
        """Start the broker and wait until it is ready. Raises NotStartedError."""
        command = [str(self._program), "start"]
        for key, value in self._overrides.items():
            command += ["--override", f"{key}={value}"]
        with self.log_path.open("a") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=self._prepare,
            )
        line = self._first_line()
        found = READY.search(line)
        if found is None:
            status = self._end(signal.SIGKILL)
            raise NotStartedError(status, line + self.log)
        self.port = int(found[1].rsplit(":", 1)[1])
        return self

    def terminate(self) -> int:
        """Send SIGTERM and wait. Returns the exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, to simulate a crash."""
        self._end(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send a signal to the running process."""
        self._running().send_signal(number)

    def wait(self, within: float = STOP_SECONDS) -> int:
        """Wait for the process to end by itself. Returns the exit status."""
        status = self._running().wait(within)
        self._forget()
        return status

    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def resident_bytes(self) -> int:
        """Return the resident memory in bytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def __enter__(self) -> Self:
        return self if self._process else self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._end(signal.SIGKILL)

    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None, "the broker is not running"
        return self._process

    def _first_line(self) -> str:
        """Return the first line of standard output, or an empty value if the stream is closed first."""
        stdout = self._running().stdout
        assert stdout is not None
        deadline = time.monotonic() + START_SECONDS
        line = b""
        while not line.endswith(b"\n"):
            # Not `select`: this process may have more than 1,024 files open.
            poll = select.poll()
            poll.register(stdout, select.POLLIN)
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                self._end(signal.SIGKILL)
                raise AssertionError(f"the broker was not ready after {START_SECONDS} s:\n{self.log}")
            part = os.read(stdout.fileno(), 4096)
            if not part:
                self._running().wait(STOP_SECONDS)
                break
            line += part
        return line.decode()

    def _end(self, number: int) -> int:
        process = self._running()
        process.send_signal(number)
        try:
            status = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the broker did not end within {STOP_SECONDS} s:\n{self.log}") from None
        finally:
            self._forget()
        return status

    def _forget(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdout is not None:
            process.stdout.close()
