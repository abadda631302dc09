"""Kafka's own tools, run one at a time in one long-lived JVM: starting a JVM takes longer than most tools run.

Owns the JVM of this process. Not for tools that read standard input, never end, or keep state in static fields as
`ConsoleConsumer` does: `pybench.peers.java.run_java_tool` starts each of those in a JVM of its own.
"""

from __future__ import annotations

import atexit
import subprocess
from contextlib import ExitStack
from functools import cache

from pybench.peers import java
from tests.support.java_oracle import JavaOracle, running


def run(tool: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end: `run("topics", "--bootstrap-server", address, "--list")`. Skips without Kafka's jars."""
    done = _oracle().query("run", tool=java.TOOLS.get(tool, tool), words=words)
    return subprocess.CompletedProcess([tool, *words], done["status"], done["out"], done["err"])


@cache
def _oracle() -> JavaOracle:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(running("ToolOracle"))
