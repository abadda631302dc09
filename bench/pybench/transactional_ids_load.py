"""Loading of transactional ids: the time after the start of a broker with many ids until its coordinator responds.

All ids share the one partition of `__transaction_state`; each has a producer id, and no transaction.
"""

from __future__ import annotations

import asyncio
import struct
import tempfile
import time
from collections import deque
from pathlib import Path

from pybench.peers.errors import PeerError
from pybench.peers.kafka import Kafka
from pybench.peers.pybroker import Pybroker
from pybroker.client import Admin
from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.errors import ErrorCode

_SETTINGS = {"transaction.state.log.num.partitions": "1"}
_CONNECTIONS, _IN_FLIGHT = 8, 250
_TIMEOUT_MS = 60_000
_RESPONSE = struct.Struct(">iiihqh")
"""Response of InitProducerId version 0: size, correlation id, throttle time, error code, producer id, epoch."""
_PATIENCE_S = 300
"""Timeout for all requests of a connection, in seconds."""


def measure_ids_load(broker: str, ids: int) -> tuple[str, dict[str, float]]:
    """Fill a broker with ids, restart it, and wait for the last. Returns command and figures. Raises PeerError."""
    last = _name(ids - 1)
    with tempfile.TemporaryDirectory(prefix="pybench-ids-") as folder:
        make = Kafka if broker == "kafka" else Pybroker
        with make(Path(folder), _SETTINGS) as node:
            with Admin(node.bootstrap_servers) as admin:
                admin.fence_producers([last])  # The first id creates the topic and waits for the coordinator.
            asyncio.run(_fill(node.bootstrap_servers, ids - 1))
        node = make(Path(folder), _SETTINGS)
        node.start()
        try:
            begun = time.monotonic()
            with Admin(node.bootstrap_servers, {"retry.backoff.ms": "5"}) as admin:
                found = admin.describe_transactions([last])[last]
            elapsed = time.monotonic() - begun
            listed = len(_listed(node.bootstrap_servers))
        finally:
            node.stop()
    if found.state != "Empty" or listed != ids:
        raise PeerError(f"{broker} has {listed} of {ids} transactional ids, and says of the last: {found}")
    command = "kafka-server-start.sh" if broker == "kafka" else "pybroker start"
    return command, {"records": float(ids), "seconds": elapsed, "loaded_s": elapsed}


def _name(number: int) -> str:
    return f"transactional-id-{number:06}"


def _listed(servers: str) -> list[str]:
    with Admin(servers) as admin:
        return [one.transactional_id for one in admin.list_transactions()]


async def _fill(servers: str, ids: int) -> None:
    """Initialize this many ids over several connections."""
    parts = [range(first, ids, _CONNECTIONS) for first in range(_CONNECTIONS)]
    await asyncio.gather(*(_initialize(servers, part) for part in parts))


async def _initialize(server: str, numbers: range) -> None:
    """Send many requests, then read their responses, repeatedly. Single latencies are not measured."""
    host, _, port = server.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        left, deadline = deque(numbers), time.monotonic() + _PATIENCE_S
        while left:
            some = [left.popleft() for _ in range(min(_IN_FLIGHT, len(left)))]
            writer.write(b"".join(_request(number) for number in some))
            for number in some:
                *_, code, _id, _epoch = _RESPONSE.unpack(await reader.readexactly(_RESPONSE.size))
                if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and time.monotonic() < deadline:
                    left.append(number)  # Brokers also return this error while they wait for a block of producer ids.
                elif code:
                    raise PeerError(f"{_name(number)} gets no producer id: error {code}")
    finally:
        writer.close()
        await writer.wait_closed()


def _request(number: int) -> bytes:
    name = _name(number).encode()
    body = struct.pack(f">h{len(name)}si", len(name), name, _TIMEOUT_MS)
    head = struct.pack(">hhih", ApiKey.INIT_PRODUCER_ID, 0, number, -1)
    return struct.pack(">i", len(head) + len(body)) + head + body
