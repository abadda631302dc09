"""Start-up and idle memory of a broker: a fresh process on formatted storage, until a Metadata request is answered."""

from __future__ import annotations

import socket
import struct
import tempfile
import time
from pathlib import Path

from pybench.peers.errors import StartError
from pybench.peers.kafka import Kafka
from pybench.peers.pybroker import Pybroker
from pybench.process import resident_bytes

_IDLE_S = 2.0
_TIMEOUT_S = 60.0


def measure_start(broker: str) -> tuple[str, dict[str, float]]:
    """Start a broker twice on one directory (the first time formats it) and measure the second: command and figures."""
    with tempfile.TemporaryDirectory(prefix="pybench-start-") as folder:
        make = Kafka if broker == "kafka" else Pybroker
        with make(Path(folder)):
            pass
        node = make(Path(folder))
        begun = time.monotonic()
        node.start()
        try:
            _await_metadata(node.bootstrap_servers)
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


def _await_metadata(server: str) -> None:
    """Ask Metadata version 1 about no topics, until an answer comes."""
    host, _, port = server.rpartition(":")
    request = struct.pack(">hhihi", 3, 1, 11, -1, 0)
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host, int(port)), timeout=5) as connection:
                connection.sendall(struct.pack(">i", len(request)) + request)
                if len(connection.recv(65536)) > 8:
                    return
        except OSError:
            pass
        time.sleep(0.002)
    raise StartError(f"{server} answered no Metadata request within {_TIMEOUT_S:.0f} s")
