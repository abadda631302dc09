"""Kafka's own arithmetic, asked over a pipe: one JVM for each program in `java/` and module of tests."""

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
    """Answers one question after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, what: str, **question: Any) -> dict[str, Any]:
        """Have Kafka compute something; what there is to ask is in the program's source."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **question}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the oracle has gone at {question}"
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def running(program: str) -> Iterator[JavaOracle]:
    """Start the JVM, and end it; skips (in CI: fails) where Java or Kafka's jars are missing."""
    programs.kafka_tools()
    *command, _tool = java.short_java_command(program)
    source = SOURCES / f"{program}.java"
    process = subprocess.Popen([*command, str(source)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield JavaOracle(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
