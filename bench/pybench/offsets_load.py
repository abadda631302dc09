"""Loading of committed offsets: the time after the start of a broker with many offsets until its coordinator responds.

All groups share the one partition of `__consumer_offsets`; each has an offset for every partition of one topic.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from pybench.peers.kafka import Kafka
from pybench.peers.pybroker import Pybroker
from pybroker.client import Admin, AsyncAdmin, BrokerError, ErrorCode, NewTopic, TopicPartition

_PARTITIONS = 1_000
_SETTINGS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
_AT_ONCE = 8


def measure_offsets_load(broker: str, offsets: int) -> tuple[str, dict[str, float]]:
    """Fill a broker with offsets, restart it, and wait for the last group's. Returns command and figures."""
    with tempfile.TemporaryDirectory(prefix="pybench-offsets-") as folder:
        make = Kafka if broker == "kafka" else Pybroker
        groups = max(1, offsets // _PARTITIONS)
        with make(Path(folder), _SETTINGS) as node:
            asyncio.run(_fill(node.bootstrap_servers, groups))
        node = make(Path(folder), _SETTINGS)
        node.start()
        try:
            begun = time.monotonic()
            with Admin(node.bootstrap_servers, {"retry.backoff.ms": "5"}) as admin:
                found = admin.list_group_offsets(f"group-{groups - 1}", [TopicPartition("t", 0)])
            elapsed = time.monotonic() - begun
            if found[TopicPartition("t", 0)].offset != groups - 1:
                raise SystemExit(f"{broker} lost a committed offset: {found}")
        finally:
            node.stop()
    command = "kafka-server-start.sh" if broker == "kafka" else "pybroker start"
    return command, {"records": float(groups * _PARTITIONS), "seconds": elapsed, "loaded_s": elapsed}


async def _fill(servers: str, groups: int) -> None:
    # A broker that opens a thousand partitions responds late, which is not part of the measurement.
    async with AsyncAdmin(servers, {"default.api.timeout.ms": "300000"}) as admin:
        await admin.create_topics([NewTopic("t", _PARTITIONS, 1)])
        deadline = time.monotonic() + 60
        while not await _has_leaders(admin):
            if time.monotonic() > deadline:
                raise SystemExit("a partition of the topic has no leader after 60 s")
            await asyncio.sleep(0.05)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def commit(number: int) -> None:
            async with turns:
                offsets = {TopicPartition("t", index): number for index in range(_PARTITIONS)}
                await admin.alter_group_offsets(f"group-{number}", offsets)

        await asyncio.gather(*(commit(number) for number in range(groups)))


async def _has_leaders(admin: AsyncAdmin) -> bool:
    try:
        (topic,) = await admin.describe_topics(["t"])
    except BrokerError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return False  # A Kafka broker learns of a topic after the response of its controller.
    return all(partition.leader >= 0 for partition in topic.partitions)
