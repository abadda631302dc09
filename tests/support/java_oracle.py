"""Kafka's own computations, called over a pipe: one JVM for each program in `java/` and test module."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pybench.peers import java
from tests.support import programs

SOURCES = Path(__file__).parent / "java"


class JavaOracle:
    """A JVM that responds to one question at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def query(self, what: str, **question: Any) -> dict[str, Any]:
        """Return the result of a computation by Kafka. The source of the Java program lists the supported questions."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **question}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the oracle has gone at {question}"
        response: dict[str, Any] = json.loads(line)
        return response


@contextmanager
def running(program: str) -> Iterator[JavaOracle]:
    """Yield a running JVM and end it. Skips (in CI: fails) the test without Java or Kafka's jars."""
    programs.kafka_tools()
    *command, _tool = java.short_java_command(program)
    with _started([*command, str(SOURCES / f"{program}.java")]) as oracle:
        yield oracle


@contextmanager
def running_with_streams_groups(program: str) -> Iterator[JavaOracle]:
    """As `running`, with the newer group coordinator that has streams groups."""
    programs.kafka_tools()
    with _started(java.streams_group_java_command(str(SOURCES / f"{program}.java"))) as oracle:
        yield oracle


@contextmanager
def _started(command: list[str]) -> Iterator[JavaOracle]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield JavaOracle(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
