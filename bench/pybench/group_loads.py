"""Loads of groups: joins of single members, and a rebalance of many. `python -m pybench.group_loads` prints JSON.

A rebalance measures only the protocol: its members are membership drivers (`pybroker.client.drivers`) without a
fetcher, on one event loop. They send four heartbeats a second, independent of the broker's interval, so that the time
is that of the work, not of waiting.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence

from pybroker.client import AsyncConsumer, Producer, TopicPartition
from pybroker.client.assignors import CooperativeStickyAssignor
from pybroker.client.consuming.topic_watch import TopicWatch
from pybroker.client.drivers.classic import ClassicDriver
from pybroker.client.drivers.driver import MembershipDriver
from pybroker.client.drivers.modern import ModernDriver
from pybroker.client.membership.heartbeat_member import MemberRules
from pybroker.client.membership.modern import ModernMember
from pybroker.client.network.cluster import Cluster
from pybroker.client.settings import ConsumerSettings

_HEARTBEAT_S = 0.25
_PATIENCE_S = 120.0


async def join(servers: str, topic: str, count: int, _properties: dict[str, str]) -> dict[str, float]:
    """Measure single consumers that join an empty group and read its first record, after one uncounted join."""
    with Producer(servers) as producer:
        producer.send(topic, b"first")
    took = [await _join_once(servers, topic, f"{topic}-{number}") for number in range(count + 1)][1:]
    took.sort()
    return {
        "records": count,
        "seconds": sum(took),
        "join_p50_ms": took[len(took) // 2] * 1000,
        "join_max_ms": took[-1] * 1000,
    }


async def _join_once(servers: str, topic: str, group: str) -> float:
    properties = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    begun = time.perf_counter()
    async with AsyncConsumer(servers, properties) as consumer:
        consumer.subscribe([topic])
        if not await consumer.poll(_PATIENCE_S, 1):
            raise SystemExit(f"no record of {topic} within {_PATIENCE_S:.0f} s")
        return time.perf_counter() - begun


class _EagerMember(ModernMember):
    """A member that sends heartbeats more often than the broker requests."""

    def heartbeat_at(self) -> float:
        # Shorten the heartbeat interval to a quarter of a second.
        return super().heartbeat_at() - max(self.membership.interval_s - _HEARTBEAT_S, 0)


class _Member:
    """A member without an application: it completes each rebalance step at once."""

    def __init__(self, servers: str, topic: str, group: str, protocol: str) -> None:
        properties = {"bootstrap.servers": servers, "group.id": group, "group.protocol": protocol}
        if protocol == "classic":  # otherwise the broker sets the interval, which `_EagerMember` shortens
            properties["heartbeat.interval.ms"] = str(round(_HEARTBEAT_S * 1000))
        settings = ConsumerSettings.from_properties(properties)
        self._cluster = Cluster(settings)
        self._topics = TopicWatch(self._cluster, settings, lambda _failure: None)
        self._topics.want([topic])
        self.driver: MembershipDriver
        if protocol == "consumer":
            modern = ModernDriver(self._cluster, settings, self._topics, self._do_steps)
            rules = MemberRules(group_id=group, instance_id=None, max_poll_interval_s=300)
            modern.member = _EagerMember(rules, modern.member.member_id)
            self.driver = modern
        else:
            assignors = [CooperativeStickyAssignor()]
            self.driver = ClassicDriver(self._cluster, settings, self._topics, self._do_steps, assignors)
        self.held: frozenset[TopicPartition] = frozenset()

    def join(self) -> None:
        self.driver.subscribe(frozenset(), "")

    def _do_steps(self) -> None:
        if (step := self.driver.rebalance_step()) is not None:
            self.driver.step_done(step)
        self.held = self.driver.owned()

    async def end(self) -> None:
        await self.driver.stop()
        await self._topics.stop()
        await self._cluster.close()


async def rebalance(servers: str, topic: str, members: int, properties: dict[str, str]) -> dict[str, float]:
    """Measure from the join of the last member until all members have an even share of the partitions."""
    protocol, partitions = properties["protocol"], int(properties["partitions"])
    everyone = [_Member(servers, topic, f"{topic}-group", protocol) for _ in range(members)]
    try:
        begun = time.perf_counter()
        for member in everyone[:-1]:
            member.join()
        await _until_even(everyone[:-1], partitions)
        formed = time.perf_counter()
        everyone[-1].join()
        await _until_even(everyone, partitions)
        ended = time.perf_counter()
    finally:
        await asyncio.gather(*(member.end() for member in everyone))
    return {"records": 1, "seconds": ended - formed, "rebalance_s": ended - formed, "formed_s": formed - begun}


async def _until_even(members: Sequence[_Member], partitions: int) -> None:
    deadline = time.perf_counter() + _PATIENCE_S
    least = partitions // len(members)
    while True:
        sizes = [len(member.held) for member in members]
        if sum(sizes) == partitions and min(sizes) >= least and max(sizes) <= least + 1:
            return
        failures = [member.driver.failure for member in members if member.driver.failure is not None]
        if failures or time.perf_counter() > deadline:
            raise SystemExit(f"{len(members)} members have {sum(sizes)} of {partitions} partitions: {failures[:1]}")
        await asyncio.sleep(0.002)


def main(words: Sequence[str]) -> None:
    """`join|rebalance SERVERS TOPIC COUNT [key=value ...]`."""
    load, servers, topic, count, *pairs = words
    run = {"join": join, "rebalance": rebalance}[load]
    properties = dict(pair.split("=", 1) for pair in pairs)
    print(json.dumps(asyncio.run(run(servers, topic, int(count), properties))))


if __name__ == "__main__":
    main(sys.argv[1:])
