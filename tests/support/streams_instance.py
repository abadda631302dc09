"""An instance of `tests.support.streams_program` as a process that a test kills, pauses and starts again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from tests.support import repository


class Instance:
    """One instance and its state directory. The directory and the log stay the same over restarts."""

    def __init__(self, settings: dict[str, object], directory: Path) -> None:
        """Start the instance."""
        self._settings = {**settings, "state.dir": str(directory)}
        self._log = directory.with_suffix(".log")
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        with self._log.open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.support.streams_program", json.dumps(self._settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=repository.ROOT,
            )

    @property
    def log(self) -> str:
        """Return the log of all runs."""
        return self._log.read_text(errors="replace")

    @property
    def is_alive(self) -> bool:
        """Whether the process exists."""
        return self._process.poll() is None

    def await_state(self, state: str) -> None:
        """Wait until the application prints a state."""
        output: IO[str] | None = self._process.stdout
        assert output is not None
        assert any(line.strip() == state for line in output), f"the instance ended before {state}"

    def kill(self) -> None:
        """Kill the process, which commits nothing."""
        self._process.kill()
        self._process.communicate()

    def pause(self) -> None:
        """Stop the execution of the process (SIGSTOP): its connections stay open."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a paused process (SIGCONT)."""
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        """Have the instance commit and leave."""
        output, _ = self._process.communicate("")
        assert self._process.returncode == 0, self.log
        assert "NOT_RUNNING" in output.split(), f"states {output.split()}: {self.log}"

    def restart(self) -> None:
        """Start the process again after it has ended."""
        self._process = self._start()
