"""One simulated process, a broker and a voter in one: the real controller, coordinator and in-sync requests on it.

Owns the order of a start (open, take part in the quorum, register, open for service) and the ways of an end. What it
has after an end is what its disk has. Must not know schedules.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from pybroker._native import SimulatedDisk
from pybroker.controller.cluster import events
from pybroker.controller.cluster.settings import ClusterSettings
from pybroker.controller.errors import ControllerError
from pybroker.controller.local_channel import LocalChannel
from pybroker.controller.quorum.settings import QuorumSettings, VoterAddress
from pybroker.controller.service import Controller
from pybroker.coordinator.group.events import FetchOffsets
from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.coordinator.group.service import GroupCoordinator
from pybroker.metadata.image import EMPTY_IMAGE, MetadataImage
from pybroker.metadata.replica_directories import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from pybroker.protocol.messages.raft_messages import RaftMessagesRequest
from pybroker.replica.in_sync import InSyncReplicas
from pybroker.replica.missing_records import find_missing_records
from tests.simulation.consumer_world import SETTINGS as GROUP_SETTINGS
from tests.simulation.simulated_broker import Checkpoint, Key, SimulatedBroker, SimulatedLog, Surroundings
from tests.simulation.simulated_loop import Life, SimulatedLoop, SlowDisk
from tests.simulation.simulated_network import LostError, Network
from tests.simulation.simulated_quorum import SilenceWatch, SimulatedPeers
from tests.simulation.simulated_transactions import NodeTransactions
from tests.support.config_rules import BadIsWrong

if TYPE_CHECKING:
    from pybroker.metadata.in_sync import InSyncChange
    from tests.simulation.whole_world import World

VOTERS = (0, 1, 2)
ADDRESSES = tuple(VoterAddress(number, "simulated", 1) for number in VOTERS)
SESSION_MS = 2000
LAG_MS = 1000
FEATURES = {
    "metadata.version": (7, 25),
    "group.version": (0, 1),
    "kraft.version": (0, 0),
    "eligible.leader.replicas.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
CLUSTER = ClusterSettings(1, 3, SESSION_MS, BadIsWrong(), 3000, 10, 1000, 0)
Crash = Literal["process", "losing", "torn"]
"""What is left of what was not synced: all of it, nothing, or some."""
_CALL_S = 0.8
_BEAT_S = 0.3


class SimulatedClock:
    """A `Clock` of the loop."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.wall_ms = self.steady_ms = loop.now_ms

    def call_later(self, delay_s: float, work: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_s, work)

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)


class SimulatedNode:
    """See the module. `life` is None while it does not run."""

    def __init__(self, number: int, world: World, directory: Path) -> None:
        self.number, self.world, self._directory = number, world, directory
        self.loop: SimulatedLoop = world.loop
        self.network: Network = world.network
        self.random = Random(f"{world.seed}/{number}")
        self.life: Life | None = None
        self.lives = 0
        self.checkpoints: dict[Key, Checkpoint] = {}
        # The epoch that it had when it stopped in order; -1 after any other end.
        self._last_epoch = -1
        self.peers: SimulatedPeers
        self.controller: Controller
        self.broker: SimulatedBroker
        self.groups: GroupCoordinator
        self.disk = self._new_disk()

    # ----------------------------------------------------------------------------------------------- start and end

    def start(self) -> None:
        """Begin a life, on what the disk has."""
        life = self.life = Life(self)
        self.lives += 1
        self.broker_epoch, self.is_open, self.stops = -1, False, False
        self.in_force: MetadataImage = EMPTY_IMAGE
        self._newest: MetadataImage = EMPTY_IMAGE
        self._logs: list[SimulatedLog] = []
        self._is_following = False
        self.loop.call_soon(self._begin, context=life.context)

    def _begin(self) -> None:
        asyncio.ensure_future(self._guard(self._run()))  # noqa: RUF006 - the life keeps its tasks

    async def _guard(self, work: Awaitable[None]) -> None:
        try:
            await work
        except (OSError, ControllerError) as error:
            self.end_soon(f"{type(error).__name__}: {error}")

    async def _run(self) -> None:
        number, loop = self.number, self.loop
        around = Surroundings(self._led, self._caught_up, self.end_soon, self._poked, self._verify)
        data = Path(self.disk.root) / "data"
        self.broker = SimulatedBroker(number, loop, data, self.checkpoints, self.world.faults, around)
        quorum = QuorumSettings(Path(self.disk.root), "c", number, VOTERS, addresses=ADDRESSES)
        controller = self.controller = Controller(CLUSTER, quorum, lambda error: self.end_soon(str(error)))
        controller._disk = SlowDisk(self.random, 0.004)  # type: ignore[assignment]
        self._in_sync = InSyncReplicas(
            number,
            self.broker.plane,  # type: ignore[arg-type]
            image=lambda: self.in_force,
            find=self.find,
            alter_partitions=self._alter,
            broker_epoch=lambda: self.broker_epoch,
        )
        self.groups = GroupCoordinator(
            GROUP_SETTINGS,
            node_id=number,
            partitions=1,
            codec=0,
            commit_timeout_ms=1000,
            load_bytes=1 << 16,
            open_log=self._open_log,
            clock=SimulatedClock(loop),  # type: ignore[arg-type]
        )
        self.transactions = NodeTransactions(self, SimulatedClock(loop))
        self.world.watch_metadata(self, controller)
        self.local = LocalChannel(controller)
        await controller.open([self, self.local.former_isr])
        await controller.start()
        self._silence = SilenceWatch(loop, self.random, controller)
        for leader in VOTERS:
            if leader != number:
                self.begin_task(self._fetch(leader))
                if self.network.reaches(number, leader):
                    self.peers.events.connected(leader)
                    self.world.nodes[leader].note_connected(number)
        self.begin_task(self._look_after())
        self.begin_task(self._belong())

    def begin_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something as long as this life lasts."""
        asyncio.ensure_future(self._guard(work))  # noqa: RUF006 - the life keeps its tasks

    def end_soon(self, why: str) -> None:
        """End this process, as it cannot go on; in the middle of a callback it is too early."""
        life = self.life
        if life is not None and not life.is_over:
            self.world.trace("dies", self.number, why.split("/")[0][:40])
            life.is_over = True
            self.loop.call_soon(self.end, "process", context=self.world.context)

    def end(self, how: Crash) -> None:
        """End this process now; `how` says what is left of what was not synced."""
        life, self.life = self.life, None
        if life is None:
            return
        life.is_over = True
        self.world.ended.append(life)
        self.let_go()
        root = self._directory / f"{self.number}-{self.lives}"
        root.mkdir()
        self.disk.fill_up_after(None)
        self.disk.fail_syncs(False)
        self.disk.crash(how, self.random.getrandbits(32), str(root))
        shutil.rmtree(self.disk.root)
        self.disk = _disk_at(root)
        for other in self.world.nodes:
            if other.life is not None:
                other.note_refused(self.number)

    def let_go(self) -> None:
        """Forget what holds files: a collection would come to it later."""
        if hasattr(self, "broker"):
            self.broker.let_go()
            del self.broker

    def _new_disk(self) -> SimulatedDisk:
        root = self._directory / f"{self.number}-0"
        root.mkdir()
        return _disk_at(root)

    # ------------------------------------------------------------------------------------------ what others notice

    def take_raft(self, request: RaftMessagesRequest) -> None:
        """Take another voter's messages."""
        if hasattr(self, "controller") and hasattr(self.controller, "_driver"):
            self.controller.step(request)
            if request.from_id == self.controller.leader_id and hasattr(self, "_silence"):
                self._silence.note()

    def note_connected(self, other: int) -> None:
        """A way to another process is open."""
        self._soon(lambda: self.peers.events.connected(other))

    def note_refused(self, other: int) -> None:
        """Another process has ended: its port refuses."""
        if (other, self.number) in self.network.cut or (self.number, other) in self.network.cut:
            return
        self._soon(lambda: self.peers.events.refused(other))
        if self.random.random() < 0.5:
            self._soon(lambda: self._forget_failed_leader(other))

    def _forget_failed_leader(self, other: int) -> None:
        """What the watch over brokers does where a connection has ended and a port refuses (ADR 0043)."""
        registered = self.controller.image.cluster.brokers.get(other)
        if self.controller.is_leader and registered is not None and self.world.nodes[other].life is None:
            asyncio.ensure_future(self._expire(other, registered.epoch))  # noqa: RUF006

    async def _expire(self, other: int, epoch: int) -> None:
        with suppress(ControllerError):
            await self.controller.submit(events.SessionExpired(other, epoch))

    def _soon(self, work: Callable[[], object]) -> None:
        life = self.life
        if life is None:
            return

        def act() -> None:
            if hasattr(self, "peers") and hasattr(self, "controller") and hasattr(self.controller, "_driver"):
                work()

        self.loop.call_later(self.random.uniform(0.001, 0.03), lambda: act(), context=life.context)

    # ---------------------------------------------------------------------------------------------------- metadata

    def publish(self, _delta: Any, image: MetadataImage, /) -> None:
        """Follow an image a little later, as a broker whose workers open logs does; several in one go."""
        self._newest = image
        if not self._is_following:
            self._is_following = True
            self.loop.call_later(self.random.uniform(0.0, 0.02), self._follow)

    def _follow(self) -> None:
        self._is_following = False
        image = self._newest
        if not self.world.may_follow(self, image):
            return
        self.broker.follow(image)
        if self.life is None or self.life.is_over:
            return
        self.in_force = image
        self._in_sync.published(image)
        self.groups.follow(image)
        self.transactions.coordinator.follow(image)

    def _led(self, key: Key, partition: Any) -> None:
        image = self._newest.topics.by_id[key[0]].partitions[key[1]]
        self.world.invariants.began_to_lead(self, key, partition, is_unclean=image.leader_recovery_state == 1)

    def _caught_up(self, event: Any) -> None:
        self._in_sync.caught_up(event)

    def _poked(self) -> None:
        for log in self._logs:
            log.look()

    def find(self, topic: str, index: int) -> Any:
        """The partition that is open here, None without one."""
        image = self.in_force.topics.by_name.get(topic)
        return None if image is None else self.broker.partitions.get((image.topic_id, index))

    async def _verify(self, producer: tuple[str, int, int], version: int, partitions: Any) -> Any:
        return await self.transactions.verify(producer, version, partitions)

    async def take_transactions(self, request: Any) -> Any:
        """Answer another broker about transactions."""
        if not self.is_open:
            raise LostError("the broker is not open")
        return await self.transactions.take(request)

    async def decide_transaction(self, event: Any) -> Any:
        """Answer a client about its transaction."""
        if not self.is_open:
            raise LostError("the broker is not open")
        return await self.transactions.decide(event)

    async def commit_offsets(self, request: Any, version: int) -> int:
        """Answer a client that commits offsets with its transaction."""
        if not self.is_open:
            raise LostError("the broker is not open")
        return await self.transactions.commit_offsets(request, version)

    async def stable_offsets(self, request: Any) -> Any:
        """Answer a client that asks for offsets which no open transaction may change."""
        if not self.is_open:
            raise LostError("the broker is not open")
        return await self.groups.submit(request.group_id, FetchOffsets(request, require_stable=True))

    def _open_log(self, index: int) -> Any:
        return self.open_log(OFFSETS_TOPIC, index, self.groups.append_completed)

    def open_log(self, topic: str, index: int, completed: Callable[[int], None]) -> Any:
        """The log of a coordinator's partition, None unless this broker leads it; `completed` is called later."""
        partition = self._find_newest(topic, index)
        if partition is None or partition.role != "leader":
            return None
        log = SimulatedLog(self.broker, partition, lambda ticket: self._completed(completed, ticket))
        self._logs.append(log)
        return log

    def _completed(self, completed: Callable[[int], None], ticket: int) -> None:
        # The event goes through the queue of the data plane, and the loop comes to it later.
        self.loop.call_later(self.random.uniform(0.0, 0.01), completed, ticket)

    def _find_newest(self, topic: str, index: int) -> Any:
        image = self._newest.topics.by_name.get(topic)
        return None if image is None else self.broker.partitions.get((image.topic_id, index))

    # ------------------------------------------------------------------------------------ what a broker does itself

    async def _query(self, handler: str, *arguments: Any) -> Any:
        """Ask the active controller; raises `ControllerError` or `LostError`."""
        leader = self.controller.leader_id
        if leader < 0:
            raise LostError("nobody leads")
        if leader == self.number:
            return await getattr(self, handler)(*arguments)
        serve = getattr(self.world.nodes[leader], handler)
        return await self.network.call(self.number, leader, serve, *arguments, within=_CALL_S)

    async def _alter(self, changes: Sequence[InSyncChange]) -> Any:
        self.world.trace("asks", self.number, tuple(change.isr for change in changes))
        response = await self._query("alter", self.number, self.broker_epoch, changes)
        self.world.trace("is answered", self.number, *(f"{one.error_code.name} {one.isr}" for one in response))
        return response

    async def alter(self, broker: int, epoch: int, changes: Sequence[InSyncChange]) -> Any:
        """Change in-sync replicas, where this node decides."""
        return await self.local.alter_partitions(broker, epoch, changes)

    async def register(self, broker: int, life: int, previous_epoch: int) -> Any:
        """Register a broker, where this node decides."""
        return await self.local.register_broker(
            broker,
            incarnation_id=bytes([broker]) * 8 + life.to_bytes(8),
            listeners={"P": ("simulated", broker)},
            security_protocols={"P": 0},
            features=FEATURES,
            previous_broker_epoch=previous_epoch,
        )

    async def beat(self, broker: int, epoch: int, wants_fence: bool, stops: bool, offset: int) -> Any:
        """Take a heartbeat, where this node decides."""
        return await self.local.heartbeat(
            broker, epoch, want_fence=wants_fence, want_shut_down=stops, metadata_offset=offset
        )

    async def place(self, broker: int, epoch: int, directories: Mapping[Key, bytes]) -> Any:
        """Take a report of where replicas lie, where this node decides."""
        return await self.local.assign_replicas(broker, epoch, directories)

    async def _place(self, directories: Mapping[Key, bytes]) -> None:
        while True:
            with suppress(LostError, ControllerError):
                if not (await self._query("place", self.number, self.broker_epoch, directories)).error_code:
                    return
            await asyncio.sleep(0.1)

    async def _belong(self) -> None:
        """Register, then beat until the end."""
        while self.broker_epoch < 0:
            try:
                response = await self._query("register", self.number, self.lives, self._last_epoch)
            except (LostError, ControllerError):
                await asyncio.sleep(0.1)
                continue
            if response.error_code:
                await asyncio.sleep(0.2)
                continue
            self.broker_epoch = response.broker_epoch
        self._last_epoch = -1
        self.world.trace("registered", self.number, self.broker_epoch)
        self.broker.plane.set_broker_epoch(self.broker_epoch)
        self.loop.call_soon(self._follow)
        while self.in_force.offset < self.broker_epoch:
            await asyncio.sleep(0.02)
        missing = find_missing_records(self.broker.partitions.values(), self.in_force)
        for directory in (LOST_DIRECTORY, UNASSIGNED_DIRECTORY) if missing else ():
            self.world.trace("reports", self.number, len(missing), directory.hex()[-1])
            await self._place(dict.fromkeys(missing, directory))
        self.is_open = True
        while True:
            try:
                response = await self._query(
                    "beat", self.number, self.broker_epoch, False, self.stops, self.in_force.offset
                )
            except (LostError, ControllerError):
                await asyncio.sleep(0.1)
                continue
            if self.stops and response.should_shut_down:
                break
            await asyncio.sleep(_BEAT_S)
        if self.broker.close():
            self._last_epoch = self.broker_epoch
        self.world.trace("stops", self.number)
        self.end_soon("stopped in order")

    async def _fetch(self, leader: int) -> None:
        """Fetch from another broker what is followed there."""
        broker, world = self.broker, self.world
        due = broker.fetch_due[leader]
        while True:
            broker.touch()
            frame = broker.plane.next_request(leader)
            if frame is None:
                due.clear()
                timer = self.loop.call_later(0.25, due.set)
                await due.wait()
                timer.cancel()
                continue
            frame = world.spoil(frame)
            serve = world.nodes[leader].serve_fetch
            try:
                response = await self.network.call(self.number, leader, serve, frame, within=0.4)
            except LostError:
                response = None
            broker.touch()
            if response is None:
                broker.plane.disconnected(leader)
                await asyncio.sleep(0.02)
                continue
            broker.plane.take_response(leader, response)
            broker.poke()

    async def serve_fetch(self, frame: bytes) -> bytes | None:
        """Answer a Fetch, or close the connection."""
        return None if not hasattr(self, "broker") else await self.broker.serve(frame, 0.25)

    async def serve_produce(self, frame: bytes) -> bytes | None:
        """Answer a Produce."""
        return None if not self.is_open else await self.broker.serve(frame, 1.0)

    async def _look_after(self) -> None:
        """Look for replicas that lag, and sync now and then."""
        while True:
            await asyncio.sleep(self.random.uniform(0.2, 0.5))
            self.broker.touch()
            self._in_sync.step_lag(list(self.broker.partitions.values()), LAG_MS)
            self.broker.poke()
            for key in list(self.broker.partitions):
                if self.random.random() < 0.3:
                    self.broker.flush(key)


def _disk_at(root: Path) -> SimulatedDisk:
    """A disk whose log directory is there and synced, as who formats a node leaves it."""
    (root / "data").mkdir(exist_ok=True)
    return SimulatedDisk(str(root))
