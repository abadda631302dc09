"""Storms: the latency of quiet clients while another client repeats the largest sensible request of an API.

Each measurement starts its own broker with `storm_requests.TOPICS` topics. The client is `brokerload quiet`: 1,000
connections send ApiVersions, Heartbeat and Metadata of one topic at a fixed rate, independent of responses (open loop).
"""

from __future__ import annotations

import json
import struct
import subprocess
import tempfile
from pathlib import Path

from pybench.peers.c_program import build_c_program
from pybench.peers.errors import PeerError
from pybench.peers.kafka import Kafka
from pybench.peers.pybroker import Pybroker
from pybench.storm_requests import PARTITIONS, Fields, frame, storms, topic_names
from pybench.topic_frames import Connection, await_leaders, create_topics
from pybroker.protocol.api_keys import ApiKey

PART = "/"
"""Separates the part of a round and its figure: `METADATA/max_ms`."""
SERVED_BY_ALL = {"telemetry.receivers": "last-values"}
"""Settings of a broker that serves every API with a storm."""
_QUIET_CLIENTS, _QUIET_RATE = 1000, 600
_MANY_CLIENTS, _IN_FLIGHT = 100, 64
_REQUESTED: tuple[tuple[str, int, Fields], ...] = (
    ("API_VERSIONS", 3, {"client_software_name": "quiet", "client_software_version": "1"}),
    ("HEARTBEAT", 4, {"group_id": "quiet", "generation_id": 1, "member_id": "nobody"}),
    ("METADATA", 12, {"topics": [{"name": "storm-0000"}]}),
)
_TIMEOUT_S = 300


def measure_storm(broker: str, milliseconds: int, work: Path) -> tuple[str, dict[str, float]]:
    """Run one storm after the other, each of `milliseconds`. Returns the maximum and p99 of the latencies."""
    folder = Path(tempfile.mkdtemp(prefix="storm-", dir=work))
    figures: dict[str, float] = {"records": 0.0, "seconds": 0.0}
    with _made(broker, folder / "data") as node:
        _prepare(node.bootstrap_servers)
        quiet = _written(folder / "quiet", *(frame(*requested) for requested in _REQUESTED))
        for name, (version, fields) in storms().items():
            storm = _written(folder / "storm", frame(name, version, fields))
            seen = _run(node.bootstrap_servers, milliseconds, quiet, ["-f", str(storm), "-k", "1"])
            figures["records"] += seen["storm_answers"]
            figures["seconds"] += seen["seconds"]
            figures[f"{name}{PART}max_ms"] = max(seen[f"quiet{kind}_max_ms"] for kind in range(len(_REQUESTED)))
            figures[f"{name}{PART}p99_ms"] = max(seen[f"quiet{kind}_p99_ms"] for kind in range(len(_REQUESTED)))
            figures[f"{name}{PART}storm_ms"] = seen["storm_p50_ms"]
            figures["late_p99_ms"] = max(figures.get("late_p99_ms", 0.0), seen["late_p99_ms"])
    for point in ("max", "p99"):
        figures[f"worst_{point}_ms"] = max(
            value for name, value in figures.items() if name.endswith(f"{PART}{point}_ms")
        )
    return f"brokerload quiet -n {milliseconds} -c {_QUIET_CLIENTS} -r {_QUIET_RATE} -k 1, for each API", figures


def measure_fairness(broker: str, milliseconds: int, work: Path) -> tuple[str, dict[str, float]]:
    """Measure latencies of new clients and members while 100 clients pipeline Metadata of all topics."""
    folder = Path(tempfile.mkdtemp(prefix="fairness-", dir=work))
    with _made(broker, folder / "data") as node:
        _prepare(node.bootstrap_servers)
        quiet = _written(folder / "quiet", *(frame(*requested) for requested in _REQUESTED[:2]))
        storm = _written(folder / "storm", frame("METADATA", 12, {"topics": None}))
        many = ["-f", str(storm), "-k", str(_MANY_CLIENTS), "-P", str(_IN_FLIGHT), "-O"]
        seen = _run(node.bootstrap_servers, milliseconds, quiet, many)
    figures = {
        "records": seen["storm_answers"],
        "bytes": seen["storm_bytes"],
        "seconds": seen["seconds"],
        "newcomer_p99_ms": seen["quiet0_p99_ms"],
        "newcomer_max_ms": seen["quiet0_max_ms"],
        "heartbeat_p99_ms": seen["quiet1_p99_ms"],
        "heartbeat_max_ms": seen["quiet1_max_ms"],
        "late_p99_ms": seen["late_p99_ms"],
    }
    return f"brokerload quiet -n {milliseconds} -c {_QUIET_CLIENTS} -r {_QUIET_RATE} {' '.join(many[2:])}", figures


def _made(broker: str, directory: Path) -> Kafka | Pybroker:
    return Kafka(directory, ready_timeout_s=_TIMEOUT_S) if broker == "kafka" else Pybroker(directory, SERVED_BY_ALL)


def _prepare(server: str) -> None:
    """Create the topics, and through FindCoordinator the coordinators' topic."""
    with Connection(server) as connection:
        create_topics(connection, topic_names(), PARTITIONS)
        connection.query(ApiKey.FIND_COORDINATOR, 0, struct.pack(">h", 5) + b"quiet")
    await_leaders(server, topic_names()[-1], PARTITIONS)


def _written(path: Path, *frames: bytes) -> Path:
    path.write_bytes(b"".join(frames))
    return path


def _run(server: str, milliseconds: int, quiet: Path, storm: list[str]) -> dict[str, float]:
    words = [str(build_c_program()), "quiet", "-b", server, "-n", str(milliseconds), "-q", str(quiet)]
    words += ["-c", str(_QUIET_CLIENTS), "-r", str(_QUIET_RATE), *storm]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if ran.returncode != 0:
        raise PeerError(f"brokerload quiet ended with status {ran.returncode}: {ran.stderr.strip()[-500:]}")
    found = json.loads(ran.stdout)
    return {name: float(value) for name, value in found.items() if isinstance(value, int | float)}
