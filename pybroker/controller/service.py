"""The controller as the rest of the broker sees it: asyncio in, committed and published metadata out.

Owns the meeting of machine, quorum and image: an event goes to the runner, the records that the machine decides on go
to the voter, and what is committed goes to the loader. Every method returns after its records are committed and the
image that holds them is published. Must not know requests: handlers translate.

A write that fails ends the controller: what of it reached the disk is known only after a restart. Callers get
`NotControllerError` from then on, and `on_failure` is called with the reason.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from pybroker.controller.cluster.brokers import build_graces, session_key
from pybroker.controller.cluster.events import (
    AllocateProducerIds,
    AlterConfigs,
    AlterReassignments,
    AssignReplicas,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    ElectLeaders,
    Heartbeat,
    ListReassignments,
    LogDirectoriesFailed,
    ReassignedTopic,
    RegisterBroker,
    UnregisterBroker,
    UpdateFeatures,
)
from pybroker.controller.cluster.machine import ClusterMachine, Event
from pybroker.controller.cluster.settings import ClusterSettings, any_group_configs, no_list, nothing_wrong
from pybroker.controller.errors import ControllerError, NotControllerError, StaleBrokerEpochError
from pybroker.controller.quorum.voter import Batch, Voter
from pybroker.machine.parts import parts
from pybroker.machine.runner import ClosedError, Runner
from pybroker.metadata.features import INITIAL_LEVELS, RECORD_VERSIONS
from pybroker.metadata.loader import Loader
from pybroker.protocol.errors import ErrorCode, ProtocolError
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.frame import decode_record, encode_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pybroker.controller.cluster.events import (
        ConfigChange,
        ConfigResult,
        CreatedTopic,
        DeletedTopic,
        ElectedTopic,
        ElectionType,
        EnlargedTopic,
        FeatureUpdate,
        HeartbeatResult,
        MorePartitions,
        NewTopic,
        OngoingTopic,
        ReassignableTopic,
        ReassignedPartition,
        RegisteredBroker,
        Result,
    )
    from pybroker.controller.cluster.settings import BrokerConfigsRule, ListRule
    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.publishers import Publisher
    from pybroker.protocol.schema import Message

log = logging.getLogger("pybroker.controller")

MAX_RECORDS_PER_BATCH = 10_000
"""Kafka's bound; a single event may exceed it, as its records are never parted."""
SEGMENT_BYTES = 1 << 30
"""Kafka's default of metadata.log.segment.bytes."""
SEGMENT_MS = 7 * 24 * 3600 * 1000
"""Kafka's default of metadata.log.segment.ms."""
_CHANGE_WEIGHT = 20
"""What the change of a resource's configurations weighs, of which all are judged anew."""


class QuorumState(NamedTuple):
    """Who leads the quorum, since when, and how far its log goes."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    """End of what is committed."""
    log_end_offset: int


class Controller:
    """The only voter of the metadata quorum, which therefore leads it. Used from one event loop."""

    def __init__(self, settings: ClusterSettings, node_id: int, publishers: Iterable[Publisher]) -> None:
        """Make a controller that is not started; `Controller.start` makes one that is."""
        self._settings = settings
        self._node_id = node_id
        self._loader = Loader(publishers)
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="pybroker-controller")
        self._failure: Exception | None = None
        self._on_failure: Callable[[Exception], None] | None = None
        self._voter: Voter
        self._runner: Runner[Event, Message]

    @classmethod
    async def start(
        cls,
        directory: Path,
        *,
        node_id: int,
        cluster_id: str,
        num_partitions: int,
        replication_factor: int,
        validate_topic_configs: Callable[[Mapping[str, str]], str | None],
        session_timeout_ms: int,
        validate_broker_configs: BrokerConfigsRule = nothing_wrong,
        list_inherited: ListRule = no_list,
        validate_group_configs: Callable[[Mapping[str, str]], str | None] = any_group_configs,
        publishers: Iterable[Publisher] = (),
        segment_bytes: int = SEGMENT_BYTES,
        segment_ms: int = SEGMENT_MS,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> Controller:
        """Open `directory`/__cluster_metadata-0, replay it, and lead the quorum of one.

        `num_partitions` and `replication_factor` stand for -1 in a new topic. `validate_topic_configs` returns what is
        wrong with a topic's own configurations, None when nothing is; `ClusterSettings` describes the other rules.
        Returns elected, replayed and published. Raises `OSError`, `ControllerError` and `MetadataError`.
        """
        settings = ClusterSettings(
            num_partitions,
            replication_factor,
            validate_topic_configs,
            session_timeout_ms,
            validate_broker_configs,
            list_inherited,
            validate_group_configs,
        )
        controller = cls(settings, node_id, publishers)
        controller._on_failure = on_failure
        try:
            await asyncio.get_running_loop().run_in_executor(
                controller._disk, controller._open, directory, segment_bytes, segment_ms
            )
        except BaseException:
            controller._disk.shutdown()
            raise
        image = controller._loader.publish()
        log.info(
            "leading cluster %s in epoch %d: %d topics at offset %d",
            cluster_id,
            controller._voter.term,
            len(image.topics.by_id),
            image.offset,
        )
        controller._runner = Runner(
            ClusterMachine(settings, image),
            controller._append,
            now=_now_ms,
            max_records=MAX_RECORDS_PER_BATCH,
        )
        controller._runner.set_timers(build_graces(image, settings, _now_ms()))
        return controller

    async def stop(self) -> None:
        """Finish what is in work, then close the log. Later calls raise `NotControllerError`."""
        await self._runner.close()
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk, self._voter.close)
        finally:
            self._disk.shutdown()

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""
        return self._loader.image

    def quorum(self) -> QuorumState:
        """Return the state of the quorum; raises `NotControllerError` when this node does not lead it."""
        if self._failure is not None:
            raise NotControllerError(f"the metadata log failed: {self._failure}")
        return QuorumState(self._node_id, self._voter.term, self.image.offset + 1, self._voter.next_offset)

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[CreatedTopic]:
        """Create topics; each succeeds or fails by itself, results in the order of `topics`."""
        created: list[CreatedTopic] = []
        for part in parts(topics, _partitions_of_new):
            event = CreateTopics(
                topics=part,
                topic_ids=[_fresh_id() for _ in part],
                seed=int.from_bytes(os.urandom(4)),
                validate_only=validate_only,
            )
            created += await self._submit(event)
        return created

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[EnlargedTopic]:
        """Give topics more partitions; each succeeds or fails by itself, results in the order of `topics`."""
        enlarged: list[EnlargedTopic] = []
        for part in parts(topics, lambda topic: max(topic.count, 1)):
            event = CreatePartitions(part, int.from_bytes(os.urandom(4)), validate_only)
            enlarged += await self._submit(event)
        return enlarged

    async def delete_topics(self, topics: Sequence[str | bytes]) -> list[DeletedTopic]:
        """Delete topics by name or 16-byte id; results in the order of `topics`."""
        deleted: list[DeletedTopic] = []
        for part in parts(topics, lambda _: 1):
            deleted += await self._submit(DeleteTopics(part))
        return deleted

    async def elect_leaders(
        self, election_type: ElectionType, partitions: Sequence[tuple[str, Sequence[int]]] | None
    ) -> list[ElectedTopic] | Result:
        """Elect leaders of partitions, None for all; each succeeds or fails by itself, unless all are refused."""
        return cast("list[ElectedTopic] | Result", await self._submit(ElectLeaders(election_type, partitions)))

    async def alter_reassignments(
        self, topics: Sequence[ReassignableTopic], *, allow_replication_factor_change: bool = True
    ) -> list[ReassignedTopic]:
        """Give partitions other replicas, or cancel that; each succeeds or fails by itself, results in their order."""
        pieces = [
            (number, msgspec.structs.replace(topic, partitions=part))
            for number, topic in enumerate(topics)
            for part in parts(topic.partitions, lambda _: 1)
        ]
        reassigned: list[list[ReassignedPartition]] = [[] for _ in topics]
        for some in parts(pieces, lambda piece: len(piece[1].partitions)):
            event = AlterReassignments([piece for _, piece in some], allow_replication_factor_change)
            for (number, _), result in zip(some, await self._submit(event), strict=True):
                reassigned[number] += result.partitions
        return [ReassignedTopic(topic.name, done) for topic, done in zip(topics, reassigned, strict=True)]

    async def list_reassignments(self, partitions: Sequence[tuple[str, Sequence[int]]] | None) -> list[OngoingTopic]:
        """Return what is being reassigned of these partitions by topic, None for all."""
        return cast("list[OngoingTopic]", await self._submit(ListReassignments(partitions)))

    async def register_broker(
        self,
        broker_id: int,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, tuple[str, int]],
        security_protocols: Mapping[str, int],
        rack: str | None = None,
        log_dirs: tuple[bytes, ...] = (),
        features: Mapping[str, tuple[int, int]] | None = None,
        fenced: bool = True,
    ) -> RegisteredBroker:
        """Register a broker; `fenced=False` is for the broker inside this process, which sends no heartbeats."""
        event = RegisterBroker(
            broker_id=broker_id,
            incarnation_id=incarnation_id,
            listeners=listeners,
            security_protocols=security_protocols,
            epoch=self._voter.next_offset,
            rack=rack,
            log_dirs=log_dirs,
            features=features or {},
            fenced=fenced,
            session_is_alive=self._runner.has_timer(session_key(broker_id)),
        )
        return cast("RegisteredBroker", await self._submit(event))

    async def heartbeat(
        self, broker_id: int, broker_epoch: int, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> HeartbeatResult:
        """Note that a broker is alive; one that does not want to be fenced is unfenced."""
        event = Heartbeat(broker_id, broker_epoch, want_fence, want_shut_down)
        return cast("HeartbeatResult", await self._submit(event))

    async def fail_log_directories(self, broker_id: int, broker_epoch: int, directories: Sequence[bytes]) -> Result:
        """Note that a broker has lost log directories: what lies there gets another leader, or none."""
        return cast("Result", await self._submit(LogDirectoriesFailed(broker_id, broker_epoch, directories)))

    async def assign_replicas(
        self, broker_id: int, broker_epoch: int, directories: Mapping[tuple[bytes, int], bytes]
    ) -> Result:
        """Note in which log directories a broker has put replicas, by topic id and partition."""
        return cast("Result", await self._submit(AssignReplicas(broker_id, broker_epoch, directories)))

    async def unregister_broker(self, broker_id: int) -> Result:
        """Forget a broker."""
        return cast("Result", await self._submit(UnregisterBroker(broker_id)))

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> range:
        """Give a broker a block of 1000 producer ids; raises `StaleBrokerEpochError`."""
        reply = await self._submit(AllocateProducerIds(broker_id, broker_epoch))
        if isinstance(reply, range):
            return reply
        result = cast("Result", reply)
        if result.error_code is ErrorCode.STALE_BROKER_EPOCH:
            raise StaleBrokerEpochError(result.error_message)
        raise ControllerError(result.error_message)

    async def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        """Set and delete configurations of topics, brokers and groups; each resource succeeds or fails by itself."""
        results: list[ConfigResult] = []
        for part in parts(changes, lambda _: _CHANGE_WEIGHT):
            results += await self._submit(AlterConfigs(part, validate_only))
        return results

    async def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> Result:
        """Finalize feature levels, all or none."""
        return cast("Result", await self._submit(UpdateFeatures(updates, self._node_id, validate_only)))

    async def _submit(self, event: Event) -> Any:
        if self._failure is not None:
            raise NotControllerError(f"the metadata log failed: {self._failure}")
        try:
            return await self._runner.submit(event)
        except ClosedError:
            raise NotControllerError("the controller is stopping") from None

    def _open(self, directory: Path, segment_bytes: int, segment_ms: int) -> None:
        """Open, replay and campaign, on the disk's thread: nobody else knows this controller yet."""
        self._voter = Voter.open(
            directory,
            node_id=self._node_id,
            voters=[self._node_id],
            segment_bytes=segment_bytes,
            segment_ms=segment_ms,
            now_ms=_wall_clock_ms,
            replay=self._load,
        )
        try:
            # The first leader ever finalizes the features, and a later one those that the log's broker did not know
            # (docs/adr/0021). A crash may have come in between, so it is the levels that are asked for, and not whether
            # the log is empty.
            levels = self._loader.peek().features.levels
            first = [
                FeatureLevelRecord(name=name, feature_level=level)
                for name, level in INITIAL_LEVELS.items()
                if name not in levels
            ]
            if levels and first:
                log.info("finalizing %s", ", ".join(f"{one.name} at level {one.feature_level}" for one in first))
            for batch in self._voter.campaign([_encode(record) for record in first]):
                self._load(batch)
        except BaseException:
            self._voter.close()
            raise

    async def _append(self, records: Sequence[Message]) -> None:
        """Commit and publish what the machine decided on."""
        if self._failure is not None:
            raise NotControllerError(f"the metadata log failed: {self._failure}")
        values = [_encode(record) for record in records]
        try:
            *others, own = await asyncio.get_running_loop().run_in_executor(self._disk, self._voter.commit, values)
        except Exception as error:
            self._fail(error)
            raise
        for batch in others:
            self._load(batch)
        self._loader.load(records, own.last_offset, own.epoch)
        self._loader.publish()

    def _load(self, batch: Batch) -> None:
        try:
            records = [decode_record(value) for value in batch.values]
        except ProtocolError as error:
            raise ControllerError(
                f"the metadata log cannot be read before offset {batch.last_offset}: {error}"
            ) from error
        self._loader.load(records, batch.last_offset, batch.epoch)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        log.critical("the metadata log failed, and with it the controller: %s", error)
        if self._on_failure is not None:
            self._on_failure(error)


def _encode(record: Message) -> bytes:
    return encode_record(record, RECORD_VERSIONS[type(record).__name__])


def _partitions_of_new(topic: NewTopic) -> int:
    return len(topic.assignments) or topic.num_partitions


def _fresh_id() -> bytes:
    """Return a random topic id; Kafka's tools take none whose text begins with a dash."""
    while True:
        topic_id = bytearray(os.urandom(16))
        topic_id[6] = topic_id[6] & 0x0F | 0x40
        topic_id[8] = topic_id[8] & 0x3F | 0x80
        if topic_id[0] >> 2 != _DASH:
            return bytes(topic_id)


_DASH = 62
"""What "-" stands for in the URL-safe base64 in which ids are written."""


def _now_ms() -> int:
    return int(time.monotonic() * 1000)


def _wall_clock_ms() -> int:
    return int(time.time() * 1000)
