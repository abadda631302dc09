"""Restarts of a broker with much data: seconds from process start to the first responses, and of the shutdown.

A directory is filled once for a contestant and used in every round. Neither broker checkpoints recovery points
meanwhile, so that each restart after a kill has to recover all data.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pybench.peers.kafka import Kafka
from pybench.peers.pybroker import Pybroker
from pybench.topic_frames import await_end, await_leaders, await_metadata
from pybroker.client import Admin, LoadGenerator, NewTopic, Producer

Figures = dict[str, float]
_TOPIC = "t"
_HOUR_MS = "3600000"
_SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": _HOUR_MS,
    "log.flush.start.offset.checkpoint.interval.ms": _HOUR_MS,
    "replica.high.watermark.checkpoint.interval.ms": _HOUR_MS,
}
_FILL = {"batch.size": "1000000", "linger.ms": "1000", "acks": "all", "max.request.size": "2000000"}
_RECORD_BYTES = 1024


class Restarts:
    """The brokers of one scenario, each with its filled directory. No broker runs between two restarts."""

    def __init__(self, properties: Mapping[str, Any], records: int) -> None:
        self._partitions = int(properties.get("partitions", 1))
        self._killed = bool(properties.get("killed", False))
        # Whether each partition gets one more record between a start and the stop that follows.
        self._written = bool(properties.get("written", False))
        self._each = records // self._partitions
        # The number of records in every partition, by contestant.
        self._held: dict[str, int] = {}
        self._nodes: dict[str, Kafka | Pybroker] = {}
        self._folders = ExitStack()

    def close(self) -> None:
        """Stop the running brokers and remove the directories."""
        for node in self._nodes.values():
            node.stop()
        self._folders.close()

    def turn(self, broker: str) -> tuple[str, Figures]:
        """Start and stop a broker. Returns its command and the figures of both."""
        node = self._nodes.get(broker) or self._fill(broker)
        measured = _start(node, self._partitions, self._held[broker])
        if self._written:
            _append(node.bootstrap_servers, self._partitions, 1)
            self._held[broker] += 1
        measured |= _end(node, killed=self._killed)
        return "kafka-server-start.sh" if broker == "kafka" else "pybroker start", measured

    def _fill(self, broker: str) -> Kafka | Pybroker:
        folder = Path(self._folders.enter_context(tempfile.TemporaryDirectory(prefix="pybench-restart-")))
        make = Kafka if broker == "kafka" else Pybroker
        node = self._nodes[broker] = make(folder, _SETTINGS, ready_timeout_s=300)
        node.start()
        with Admin(node.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(_TOPIC, self._partitions, 1)])
            admin.wait_for_leaders(_TOPIC)
        _append(node.bootstrap_servers, self._partitions, self._each)
        self._held[broker] = self._each
        _end(node, killed=self._killed)
        return node


def _append(servers: str, partitions: int, each: int) -> None:
    """Append `each` records to every partition."""
    with Producer(servers, _FILL) as producer:
        load = LoadGenerator(producer)
        for partition in range(partitions):
            load.send_random_letters(_TOPIC, partition, _RECORD_BYTES, each)


def _end(node: Kafka | Pybroker, *, killed: bool) -> Figures:
    """Stop or kill the node. Measures the time until its process ends."""
    begun = time.monotonic()
    if killed:
        node.kill()
    else:
        node.stop()
    took = time.monotonic() - begun
    # Write back dirty pages here, not during the measurement of the next start.
    os.sync()
    return {"stop_s": took}


def _start(node: Kafka | Pybroker, partitions: int, each: int) -> Figures:
    """Start the node. Measures the time to a Metadata response, and to the leaders and the last end offset."""
    begun = time.monotonic()
    node.start()
    await_metadata(node.bootstrap_servers)
    responded = time.monotonic() - begun
    await_leaders(node.bootstrap_servers, _TOPIC, partitions)
    held = await_end(node.bootstrap_servers, _TOPIC, partitions - 1)
    with_leaders = time.monotonic() - begun
    if held != each:
        raise SystemExit(f"the last partition ends at {held} after a restart, {each} were acknowledged")
    return {
        "records": float(partitions * each),
        "seconds": with_leaders,
        "start_s": responded,
        "led_s": with_leaders,
    }
