"""One node's process: `pybroker start` with its settings file.

Owns the process from its start to its end, and its ready line. A process that another program has started is
identified by its id and its start time, so a reused process id is never signalled.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.local_cluster.layout import NodeLayout

_START_TIME_FIELD = 19  # of /proc/<pid>/stat after the command: clock ticks since boot (proc(5), field 22)
_LAST_WORDS = 2000  # characters of its log that an error contains


class NodeFailedError(Exception):
    """A node did not start, or did not end. The message has the node, the status, and the end of its log."""


class NodeLateError(NodeFailedError):
    """A node runs, but was not ready before its timeout."""


class ProcessMark(NamedTuple):
    """Identifies a process among all that this machine has run since its boot."""

    pid: int
    started: int

    def is_alive(self) -> bool:
        """Return whether the process exists and is no zombie."""
        return self.pid > 0 and _state(self.pid) not in (None, "Z") and _started(self.pid) == self.started

    def is_paused(self) -> bool:
        """Return whether the process is stopped by a signal."""
        return _state(self.pid) == "T"

    def send(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.is_alive():
            os.kill(self.pid, number)


class NodeProcess:
    """The process of one node, started here; at most one runs at a time."""

    def __init__(self, node: NodeLayout, wrapper: Sequence[str] = ()) -> None:
        """Prepare the process.

        `wrapper` is a program that executes the node in its place, as `ip netns exec NAME` does.
        """
        self.node = node
        self._wrapper = tuple(wrapper)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def mark(self) -> ProcessMark | None:
        """Return the identity of the running process, None where there is none."""
        process = self._process
        if process is None or process.poll() is not None:
            return None
        return ProcessMark(process.pid, _started(process.pid) or 0)

    @property
    def is_running(self) -> bool:
        """Whether the process exists, paused or not."""
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Start the process without waiting for it. Raises OSError, and RuntimeError for a node that is running."""
        if self.is_running:
            raise RuntimeError(f"broker {self.node.node_id} is already running as process {self._running().pid}")
        self._forget()
        program = [sys.executable, "-m", "pybroker.cli.main", "start", "--config", str(self.node.settings)]
        with self.node.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._wrapper, *program],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=Path.cwd(),
                # Ctrl-C must reach only the program that started the cluster, which ends the nodes in order.
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill the process, as a crash does, unless it has ended."""
        self.signal(signal.SIGKILL)
        self._reap()

    def signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def ended(self, within_s: float) -> int:
        """Wait for the end and return the exit status.

        After the timeout the process is killed, and NodeFailedError raised.
        """
        process = self._process
        if process is None:
            return 0
        try:
            status = process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NodeFailedError(
                f"broker {self.node.node_id} did not stop within {within_s:g} s and was killed; {self._last_words()}"
            ) from None
        self._forget()
        return status

    def leave(self) -> None:
        """Detach the process, which then outlives this object and this program."""
        process = self._process
        self._forget()
        if process is not None:
            process.returncode = 0  # this program does not wait for the child any more

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"broker {self.node.node_id} is not running")
        return self._process

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._forget()

    def _forget(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdout is not None:
            process.stdout.close()

    def _last_words(self) -> str:
        return f"its log {self.node.log} ends with:\n{last_words(self.node.log)}"


def wait_ready(processes: Sequence[NodeProcess], within_s: float) -> None:
    """Wait until every process has printed its ready line.

    Raises NodeLateError where one is not ready in time, and NodeFailedError where one has ended.
    """
    deadline = time.monotonic() + within_s
    poll = select.poll()
    waiting = {}
    for process in processes:
        stdout = process._running().stdout
        assert stdout is not None
        waiting[stdout.fileno()] = process
        poll.register(stdout, select.POLLIN)
    while waiting:
        ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            names = ", ".join(str(process.node.node_id) for process in waiting.values())
            late = next(iter(waiting.values()))
            raise NodeLateError(f"brokers {names} were not ready within {within_s:g} s; {late._last_words()}")
        for descriptor, _ in ready:
            process = waiting.pop(descriptor)
            poll.unregister(descriptor)
            # Standard output has only the ready line. It is closed without output if the process ends first.
            if not os.read(descriptor, 4096):
                status = process._running().wait()
                raise NodeFailedError(
                    f"broker {process.node.node_id} exited with status {status} before it was ready; "
                    f"{process._last_words()}"
                )


def last_words(log: Path) -> str:
    """Return the end of a node's log."""
    try:
        text = log.read_bytes()[-_LAST_WORDS:].decode(errors="replace")
    except OSError:
        return ""
    return text if len(text) < _LAST_WORDS else text.partition("\n")[2]


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _state(pid: int) -> str | None:
    fields = _stat(pid)
    return fields[0] if fields else None


def _started(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[_START_TIME_FIELD]) if fields else None
