"""A producer, a consumer and a group's committer of a simulated cluster.

Owns what clients believe: who leads, what was answered. Each record's value is sent once, so that it is known again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from pybroker._native import build_record_batch, parse_metadata_batches
from pybroker.coordinator.group.events import CommitOffsets, FetchOffsets
from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.protocol.codec import decode
from pybroker.protocol.header import skip_tagged
from pybroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pybroker.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from pybroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.simulation.simulated_loop import Life
from tests.simulation.simulated_network import LostError
from tests.simulation.simulated_producers import TransactionalClients, frame_of

if TYPE_CHECKING:
    from tests.simulation.simulated_node import SimulatedNode
    from tests.simulation.whole_world import World

CLIENT = 9
TOPIC = "t"
_PRODUCE_VERSION, _FETCH_VERSION = 12, 16
_CALL_S = 1.5
_GROUP = "g"


class Clients:
    """See the module."""

    def __init__(self, world: World) -> None:
        self._world, self._random = world, Random(f"{world.seed}/clients")
        self.life: Life | None = Life(self)
        self._values = 0
        self._position = 0
        self._offset = 0
        self.produced = self.consumed = self.commits = 0
        self.transactional = TransactionalClients(self, world)

    def start(self) -> None:
        """Begin to work."""
        assert self.life is not None
        works = [self._produce(), self._produce(), self._consume(), self._commit()]
        works += self.transactional.works() if self._world.plan.has_transactions else []
        for work in works:
            self._world.loop.call_soon(self._begin, work, context=self.life.context)

    def stop(self) -> None:
        """End."""
        if self.life is not None:
            self.life.is_over = True
            self._world.ended.append(self.life)
            self.life = None

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.ensure_future(work)  # noqa: RUF006 - the life keeps its tasks

    def leader_of(self, topic: str) -> tuple[SimulatedNode, bytes, int] | None:
        """The leader that some broker names, which may be long over."""
        requested = self._random.choice(self._world.nodes)
        if requested.life is None or not hasattr(requested, "in_force"):
            return None
        found = requested.in_force.topics.by_name.get(topic)
        if found is None or found.partitions[0].leader < 0:
            return None
        partition = found.partitions[0]
        return self._world.nodes[partition.leader], found.topic_id, partition.leader_epoch

    async def call(self, node: SimulatedNode, handler: Any, *arguments: Any) -> Any:
        """Ask a node; raises `LostError`, and what it raises."""
        return await self._world.network.call(CLIENT, node.number, handler, *arguments, within=_CALL_S)

    async def _produce(self) -> None:
        world = self._world
        while True:
            await asyncio.sleep(self._random.uniform(0.0, 0.12))
            found = self.leader_of(TOPIC)
            if found is None:
                continue
            leader, topic_id, _ = found
            self._values += 1
            value = b"v%d" % self._values
            batch = build_record_batch([value], world.loop.now_ms())
            acks = 1 if world.faults.acknowledges_early else -1
            data = [PartitionProduceData(index=0, records=batch)]
            topics = [TopicProduceData(name=TOPIC, partition_data=data)]
            request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)
            frame = frame_of(0, _PRODUCE_VERSION, request)
            try:
                reply = await self.call(leader, leader.serve_produce, frame)
            except LostError:
                continue
            if reply is None:
                continue
            response, _ = decode(ProduceResponse, reply, _PRODUCE_VERSION, skip_tagged(reply, 4))
            [partition] = response.responses[0].partition_responses
            if partition.error_code == 0:
                self.produced += 1
                world.acknowledged(leader, (topic_id, 0), partition.base_offset, value)

    async def _consume(self) -> None:
        world = self._world
        while True:
            await asyncio.sleep(self._random.uniform(0.05, 0.3))
            found = self.leader_of(TOPIC)
            if found is None:
                continue
            leader, topic_id, epoch = found
            wanted = FetchPartition(
                partition=0, current_leader_epoch=epoch, fetch_offset=self._position, partition_max_bytes=1 << 11
            )
            topics = [FetchTopic(topic_id=topic_id, partitions=[wanted])]
            request = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1 << 12, topics=topics)
            try:
                reply = await self.call(leader, leader.serve_produce, frame_of(1, _FETCH_VERSION, request))
            except LostError:
                continue
            if reply is None:
                continue
            response, _ = decode(FetchResponse, reply, _FETCH_VERSION, skip_tagged(reply, 4))
            for topic in response.responses:
                for partition in topic.partitions:
                    self._take(world, (topic_id, 0), partition)

    def _take(self, world: World, key: tuple[bytes, int], partition: Any) -> None:
        world.check(
            partition.error_code != 1 or world.invariants.unclean_elections > 0, "a consumer's offset is out of range"
        )
        batches, _ = parse_metadata_batches(partition.records or b"")
        for base_offset, last_offset, _, _, _, values in batches:
            for number, value in enumerate(values):
                offset = base_offset + number
                if offset >= self._position:
                    world.invariants.note_consumed(key, offset, value)
                    self.consumed += 1
            self._position = max(self._position, last_offset + 1)

    async def _commit(self) -> None:
        """Commit ever larger offsets, and look now and then which is committed."""
        world = self._world
        while True:
            await asyncio.sleep(self._random.uniform(0.05, 0.4))
            found = self.leader_of(OFFSETS_TOPIC)
            if found is None:
                continue
            coordinator, unclean = found[0], world.invariants.unclean_elections
            try:
                if self._random.random() < 0.6:
                    self._offset += 1
                    await self.call(coordinator, self._commit_at, coordinator, self._offset)
                    if world.invariants.unclean_elections == unclean:  # Such an election may lose what was answered.
                        world.invariants.note_offset(0, self._offset)
                    self.commits += 1
                else:
                    known = world.invariants.responded_offset(0)
                    committed = await self.call(coordinator, self._committed_at, coordinator)
                    is_leader = world.invariants.is_leader(coordinator.number, OFFSETS_TOPIC)
                    if is_leader and world.invariants.unclean_elections == unclean:
                        world.invariants.check_offset(0, known, committed)
            except AssertionError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever a coordinator refuses with: it is asked again
                world.trace("refused", type(error).__name__)

    async def _commit_at(self, coordinator: SimulatedNode, offset: int) -> None:
        partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
        topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
        request = OffsetCommitRequest(group_id=_GROUP, generation_id_or_member_epoch=-1, topics=topics)
        response = await coordinator.groups.submit(_GROUP, CommitOffsets(request, 9))
        code = response.topics[0].partitions[0].error_code
        assert code == 0, f"a commit is answered with error {code}"

    async def _committed_at(self, coordinator: SimulatedNode) -> int:
        topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
        group = OffsetFetchRequestGroup(group_id=_GROUP, topics=topics)
        response = await coordinator.groups.submit(_GROUP, FetchOffsets(group))
        return int(response.topics[0].partitions[0].committed_offset)
