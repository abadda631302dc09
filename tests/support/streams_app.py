"""Instances of a Kafka Streams application: the programs of `java/streams_app`, each a process."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from pybench.peers import java
from tests.support import programs
from tests.support.conditions import wait_until

SOURCES = Path(__file__).parent / "java" / "streams_app"
WITHIN_S = 60


class StreamsApp:
    """A running instance. Its lines of output are collected by a thread."""

    def __init__(self, program: str, settings: Mapping[str, str], log: Path) -> None:
        programs.kafka_tools()
        words = [word for pair in settings.items() for word in pair]
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [*java.streams_java_command(program, SOURCES), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, line: str) -> None:
        """Wait until the instance has printed a line."""
        wait_until(lambda: line in self.lines, within=WITHIN_S, what=f"{line!r} among {self.lines}")

    def say(self, line: str) -> None:
        """Send a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """End the instance by SIGKILL: it does not leave its group."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """End the instance, if it is running."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._reader.join()
