"""Startup time and idle memory of a broker: a new process on formatted storage, until its first Metadata response."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from pybench.peers.kafka import Kafka
from pybench.peers.pybroker import Pybroker
from pybench.process import resident_bytes
from pybench.topic_frames import await_metadata

_IDLE_S = 2.0


def measure_start(broker: str) -> tuple[str, dict[str, float]]:
    """Start a broker on a new directory, and again. Returns the command and the figures of the second start."""
    with tempfile.TemporaryDirectory(prefix="pybench-start-") as folder:
        make = Kafka if broker == "kafka" else Pybroker
        with make(Path(folder)):
            pass
        node = make(Path(folder))
        begun = time.monotonic()
        node.start()
        try:
            await_metadata(node.bootstrap_servers)
            elapsed = time.monotonic() - begun
            time.sleep(_IDLE_S)
            command = "kafka-server-start.sh" if broker == "kafka" else "pybroker start"
            return command, {
                "start_s": elapsed,
                "idle_rss_bytes": float(resident_bytes(node.pid)),
                "records": 1,
                "seconds": elapsed,
            }
        finally:
            node.stop()
