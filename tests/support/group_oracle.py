"""Kafka's own arithmetic of KIP-848, asked over a pipe: one JVM for a whole test run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pybench.peers import java
from tests.support import programs

SOURCE = Path(__file__).parent / "java" / "GroupOracle.java"


class GroupOracle:
    """Answers one question after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, what: str, **question: Any) -> dict[str, Any]:
        """Have Kafka compute something; what there is to ask is in `GroupOracle.java`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **question}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the oracle has gone at {question}"
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def running() -> Iterator[GroupOracle]:
    """Start the JVM, and end it; skips (in CI: fails) where Java or Kafka's jars are missing."""
    programs.kafka_tools()
    *command, _tool = java.java_command("GroupOracle", options=("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"))
    process = subprocess.Popen([*command, str(SOURCE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield GroupOracle(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
