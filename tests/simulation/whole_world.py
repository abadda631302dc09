"""A whole cluster in one process from one seed: three brokers that vote, clients, and what befalls them.

Owns the schedule of faults (`Plan`), and a run of it: chaos first, then peace, in which everything has to come right
again. The parts are real but for sockets, clocks, threads and disks.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from pybroker.controller import service
from pybroker.controller.cluster import events
from pybroker.controller.cluster import in_sync as in_sync_changes
from pybroker.controller.cluster.whole_requests import whole_creation
from pybroker.controller.errors import ControllerError
from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC
from pybroker.metadata.loader import Loader
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import RequestHeader
from pybroker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from pybroker.protocol.messages.fetch import FetchRequest
from pybroker.replica import in_sync
from tests.simulation.simulated_broker import NO_FAULTS, Faults, Key
from tests.simulation.simulated_clients import CLIENT, TOPIC, Clients
from tests.simulation.simulated_loop import Life, SimulatedLoop, living
from tests.simulation.simulated_network import Network
from tests.simulation.simulated_node import VOTERS, Crash, SimulatedNode
from tests.simulation.simulated_producers import GROUPS, OUTPUTS, request_of
from tests.simulation.simulated_quorum import simulated
from tests.simulation.whole_invariants import BrokenError, Invariants
from tests.support.batches import read_batches

CHAOS_S = 6.0
PEACE_S = 30.0
TRANSACTIONS_EACH = 3
"""Of so many seeds one has transactional clients, which take as long again."""
_TICK_S = 0.05
_IN_PROGRESS_S = 2.0
"""No request of a client that has ended is worked on for longer."""
_CRASHES: tuple[Crash, ...] = ("losing", "torn", "process")
_TOPIC_IDS = {TOPIC: b"t" * 16, OFFSETS_TOPIC: b"o" * 16}
_TOPICS_OF_TRANSACTIONS = {STATE_TOPIC: b"s" * 16, **{name: name.encode() * 16 for name in OUTPUTS}}


class Fault(NamedTuple):
    """Something that befalls the cluster."""

    at_s: float
    what: str
    node: int = -1
    other: int = -1
    how: Crash = "process"


class Plan(NamedTuple):
    """What a run is made of."""

    seed: int
    faults: tuple[Fault, ...]
    keeps_eligible: bool
    """Eligible leader replicas are kept (KIP-966): then a machine may lose what was not synced."""
    has_transactions: bool
    """There are transactional clients, too."""


def build_plan(seed: int) -> Plan:
    """Draw the faults of a seed."""
    random = Random(f"plan {seed}")
    keeps_eligible = random.random() < 0.5
    faults, now = [], 1.2
    while now < CHAOS_S:
        node, other = random.sample(VOTERS, 2)
        what = random.choices(
            ["kill", "kill all", "part", "part one way", "heal", "lossy", "stop", "full", "unsyncable"],
            [7, 0.5, 3, 3, 4, 1.5, 2, 1.5, 1],
        )[0]
        how = random.choice(_CRASHES) if keeps_eligible else "process"
        faults.append(Fault(round(now, 3), what, node, other, how))
        if what in ("kill", "full", "unsyncable", "stop"):
            faults.append(Fault(round(now + random.choice((0.02, 0.3, 1.5, 4.0)) * random.random(), 3), "start", node))
        now += random.expovariate(2.0)
    return Plan(seed, tuple(sorted(faults)), keeps_eligible, has_transactions=seed % TRANSACTIONS_EACH == 0)


class World:
    """One run."""

    def __init__(self, plan: Plan, faults: Faults = NO_FAULTS) -> None:
        self.plan, self.seed, self.faults = plan, plan.seed, faults
        self.random = Random(f"world {plan.seed}")
        self.loop = SimulatedLoop()
        self.context = copy_context()
        self.network = Network(self.loop, Random(f"network {plan.seed}"))
        self.invariants = Invariants()
        self.ended: list[Life] = []
        self.nodes: list[SimulatedNode] = []
        self.broken: BaseException | None = None
        self.lines: list[str] = []
        self._digest = hashlib.sha256()
        self.writes_trace = False
        self._producer_ids = 0
        # Who has ended is started again at once.
        self._is_peace = False

    # ------------------------------------------------------------------------------------------------------- a run

    def run(self) -> str:
        """Play it; return the digest of what happened. Raises `BrokenError`."""
        shared = Path("/dev/shm")
        directory = Path(tempfile.mkdtemp(prefix="simulated-", dir=shared if shared.is_dir() else None))
        try:
            with simulated(self.loop, self.random, persists_votes=not self.faults.forgets_votes), self._patched():
                self.nodes += [SimulatedNode(number, self, directory) for number in VOTERS]
                self.network.processes.update({node.number: node for node in self.nodes})
                self.clients = self.network.processes[CLIENT] = Clients(self)
                self._play()
        finally:
            for node in self.nodes:
                if node.life is not None:
                    node.life.is_over = True
                    self.ended.append(node.life)
                node.let_go()
                del node.disk
            for life in [*self.ended, *([] if self.clients.life is None else [self.clients.life])]:
                life.forget()
            self.loop._ready.clear()  # type: ignore[attr-defined]
            self.loop._scheduled.clear()  # type: ignore[attr-defined]
            self.loop.close()
            shutil.rmtree(directory, ignore_errors=True)
        return self._digest.hexdigest()

    def _patched(self) -> Any:
        patches = [
            patch.object(service, "Loader", WatchedLoader),
            patch.object(in_sync, "lagging_replicas", _lagging_replicas),
            patch.object(in_sync, "stop_joining", _stop_joining),
        ]
        if self.faults.fences_nobody:
            patches.append(patch.object(in_sync_changes._Changes, "_fault", lambda *_: ErrorCode.NONE))
        return _All(patches)

    def _play(self) -> None:
        for node in self.nodes:
            node.start()
        self._pass(lambda: self._leader() is not None, 10.0, "no controller was elected at the start")
        self._create_topics()
        self.clients.start()
        waiting = list(self.plan.faults)
        end = self.loop.time() + CHAOS_S
        began = self.loop.time()
        while self.loop.time() < end:
            while waiting and waiting[0].at_s + began <= self.loop.time():
                self._befall(waiting.pop(0))
            self._tick()
        self._make_peace()

    def _make_peace(self) -> None:
        self.trace("peace")
        self._heal()
        for node in self.nodes:
            node.disk.fill_up_after(None)
            node.disk.fail_syncs(False)
        self._is_peace = True
        before = self.clients.produced
        end = self.loop.time() + PEACE_S
        is_quiet = False
        while self.loop.time() < end and not is_quiet:
            self._tick()
            is_quiet = self.clients.produced > before + 3 and self._is_whole()
        if not is_quiet:
            if self._lost_all_in_sync():
                return
            raise BrokenError(f"the cluster does not come right again: {self._state()}")
        self.clients.stop()
        # An unclean election may lose what a coordinator knew: a transaction that nobody knows is open for ever.
        if self.plan.has_transactions and not self.has_lost(STATE_TOPIC):
            quiet_at = self.loop.time() + _IN_PROGRESS_S
            self._pass(lambda: self.loop.time() >= quiet_at, _IN_PROGRESS_S + 1, "time stands still")
            self._pass(self._is_decided, 15.0, "a transaction is open for ever")
        self._pass(self._is_whole, 10.0, "replicas do not agree")
        self.invariants.check_all(self.nodes)
        if self.plan.has_transactions and not self.has_lost(STATE_TOPIC):
            kept = [name for name in OUTPUTS if not self.has_lost(name)]
            logs = {name: self.nodes[0].broker.raw((_TOPICS_OF_TRANSACTIONS[name], 0)) for name in kept}
            offsets = {} if self.lost_offsets() else self._committed_offsets()
            audit = self.clients.transactional.audit
            audit.check({name: read_batches(log) for name, log in logs.items()}, offsets)

    def has_lost(self, topic: str) -> bool:
        """Whether a leader of a topic's only partition may have lacked what was committed there.

        Transactions lack what their coordinator does.
        """
        ids = _TOPIC_IDS | _TOPICS_OF_TRANSACTIONS
        return not self.invariants.unclean.keys().isdisjoint([(ids[topic], 0), (ids[STATE_TOPIC], 0)])

    def lost_offsets(self) -> bool:
        """As `has_lost` of the groups' offsets."""
        return self.has_lost(OFFSETS_TOPIC)

    def _committed_offsets(self) -> dict[str, int]:
        """Of each group the offset that its coordinator has, which no transaction may change any more."""
        clients, found = self.clients.transactional, dict[str, int]()

        async def query(group: str, coordinator: SimulatedNode) -> None:
            try:
                response = await coordinator.stable_offsets(request_of(group))
            except Exception:  # noqa: BLE001 - whatever a coordinator refuses with: it is asked again
                return
            known = clients.audit.known_offset(group)
            offset = clients.take_offset(group, known, response, is_newest=True)
            if offset is not None:
                found[group] = offset

        def begin(group: str, coordinator: SimulatedNode) -> None:
            self.loop.create_task(query(group, coordinator))

        def are_known() -> bool:
            leader = self._leader()
            topics = {} if leader is None else leader.controller.image.topics.by_name
            number = topics[OFFSETS_TOPIC].partitions[0].leader if topics else -1
            coordinator = self.nodes[number]
            for group in GROUPS:
                if group not in found and number >= 0 and coordinator.life is not None:
                    self.loop.call_soon(begin, group, coordinator, context=coordinator.life.context)
            return len(found) == len(GROUPS)

        self._pass(are_known, 10.0, "a group's offset is not stable")
        return found

    def _is_decided(self) -> bool:
        """No transaction is open in any partition that has lost none."""
        leader = self._leader()
        if leader is None or any(node.life is None or not node.is_open for node in self.nodes):
            return False
        topics = leader.controller.image.topics.by_name
        ids = {**{name: _TOPICS_OF_TRANSACTIONS[name] for name in OUTPUTS}, OFFSETS_TOPIC: _TOPIC_IDS[OFFSETS_TOPIC]}
        kept = {name: topic_id for name, topic_id in ids.items() if not self.has_lost(name)}
        leaders = [(topics[name].partitions[0].leader, (topic_id, 0)) for name, topic_id in kept.items()]
        found = [self.nodes[number].broker.partitions[key] for number, key in leaders if number >= 0]
        return len(found) == len(leaders) and all(p.last_stable_offset == p.log_end_offset for p in found)

    def _pass(self, condition: Any, within_s: float, fault: str) -> None:
        end = self.loop.time() + within_s
        while not condition():
            if self.loop.time() >= end:
                raise BrokenError(f"{fault}: {self._state()}")
            self._tick()

    def _tick(self) -> None:
        for node in self.nodes:
            if self._is_peace and node.life is None:
                node.start()
        until = self.loop.time() + _TICK_S
        self.loop.call_at(until, lambda: None, context=self.context)
        asyncio._set_running_loop(self.loop)
        try:
            while self.loop.time() < until:
                self.loop._run_once()  # type: ignore[attr-defined]
        finally:
            asyncio._set_running_loop(None)
        if self.broken is not None:
            raise self.broken
        if self.loop.faults:
            raise BrokenError("; ".join(self.loop.faults))
        for life in [*self.ended, *(node.life for node in self.nodes if node.life is not None), self.clients.life]:
            for task in [] if life is None else life.tasks:
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    raise error
            if life is not None:
                life.tasks = [task for task in life.tasks if life.is_over or not task.done()]
        self.invariants.look(self.nodes)

    # ------------------------------------------------------------------------------------------------------ faults

    def _befall(self, fault: Fault) -> None:
        self.trace(*fault[1:])
        node = self.nodes[fault.node]
        match fault.what:
            case "kill":
                self._kill(node, fault.how)
            case "kill all":
                for one in self.nodes:
                    self._kill(one, "process")
                    one.start()
            case "start":
                if node.life is None:
                    node.start()
            case "stop":
                node.stops = True
            case "part":
                others = [number for number in (*VOTERS, CLIENT) if number != fault.node]
                self.network.cut |= {(fault.node, number) for number in others}
                self.network.cut |= {(number, fault.node) for number in others}
            case "part one way":
                self.network.cut.add((fault.node, fault.other))
            case "heal":
                self._heal()
            case "lossy":
                self.network.loss = 0.15
            case "full":
                node.disk.fill_up_after(self.random.randint(0, 20))
            case "unsyncable":
                node.disk.fail_syncs(True)

    def _kill(self, node: SimulatedNode, how: Crash) -> None:
        if node.life is not None:
            node.end(how)

    def _heal(self) -> None:
        self.network.cut.clear()
        self.network.loss = 0.0
        for one in self.nodes:
            for other in self.nodes:
                if one is not other and self.network.reaches(one.number, other.number):
                    one.note_connected(other.number)

    # ------------------------------------------------------------------------------------------------------- parts

    def _create_topics(self) -> None:
        config = [CreatableTopicConfig(name="min.insync.replicas", value="2")]
        topics = _TOPIC_IDS | (_TOPICS_OF_TRANSACTIONS if self.plan.has_transactions else {})
        for name, topic_id in topics.items():
            topic = CreatableTopic(name=name, num_partitions=1, replication_factor=3, configs=config)
            event = events.CreateTopics([topic], [topic_id], self.random.randrange(99), whole_creation([topic], 1))

            def is_there(event: Any = event, name: str = name) -> bool:
                leader = self._leader()
                if leader is not None and name not in leader.controller.image.topics.by_name:
                    self._submit(leader, event)
                return leader is not None and name in leader.controller.image.topics.by_name

            self._pass(is_there, 10.0, f"topic {name} is not created")
        if self.plan.keeps_eligible:
            self._pass(self._is_eligible_kept, 10.0, "eligible leader replicas are not kept")

    def _is_eligible_kept(self) -> bool:
        leader, name = self._leader(), "eligible.leader.replicas.version"
        if leader is None:
            return False
        if leader.controller.image.features.levels.get(name) == 1:
            return True
        self._submit(leader, events.UpdateFeatures([events.FeatureUpdate(name, 1)], leader.number))
        return False

    def _submit(self, leader: SimulatedNode, event: Any) -> None:
        async def submit() -> None:
            with suppress(ControllerError):
                await leader.controller.submit(event)

        assert leader.life is not None
        self.loop.call_soon(lambda: self.loop.create_task(submit()), context=leader.life.context)

    def _leader(self) -> SimulatedNode | None:
        leaders = [one for one in self.nodes if one.life is not None and one.is_open and one.controller.is_leader]
        return max(leaders, key=lambda one: one.controller.leader_epoch, default=None)

    def _is_whole(self) -> bool:
        """Every replica is in sync, and has what every other has."""
        leader = self._leader()
        if leader is None or any(node.life is None or not node.is_open for node in self.nodes):
            return False
        topics = leader.controller.image.topics.by_id
        for topic in topics.values():
            if any(len(partition.isr) < len(partition.replicas) for partition in topic.partitions.values()):
                return False
        if len({node.in_force.offset for node in self.nodes}) > 1:
            return False
        ends = [
            {(p.log_end_offset, p.high_watermark) for p in (node.broker.partitions[key] for node in self.nodes)}
            for key in leader.broker.partitions
        ]
        return all(len(end) == 1 for end in ends) or self.clients.life is not None

    def _lost_all_in_sync(self) -> bool:
        """Whether nobody may lead for want of what was in memory alone: that takes a human's decision."""
        leader = self._leader()
        if leader is None or not self.plan.keeps_eligible:
            return False
        topics = leader.controller.image.topics.by_id.values()
        return any(partition.leader < 0 and not partition.isr for t in topics for partition in t.partitions.values())

    def _state(self) -> str:
        return "\n  ".join(["", *map(_describe, self.nodes)])

    # -------------------------------------------------------------------------------------------- what parts report

    def check(self, holds: bool, fault: str) -> None:
        """Break where something does not hold."""
        if not holds:
            raise BrokenError(fault)

    def next_producer_id(self) -> int:
        """A producer id that nobody has."""
        self._producer_ids += 1
        return self._producer_ids

    def trace(self, *what: Any) -> None:
        """Note what happens."""
        line = f"{self.loop.time():.4f} {' '.join(map(str, what))}"
        self._digest.update(line.encode())
        self.lines.append(line)
        if self.writes_trace:
            print(line)

    def watch_metadata(self, node: SimulatedNode, controller: Any) -> None:
        """Follow what a controller does."""

        def leadership(leads: bool) -> None:
            if leads:
                self.trace("controls", node.number, controller.leader_epoch)
                self.invariants.controls(node.number, controller.leader_epoch)

        controller.on_leadership(leadership)

    def loaded(self, node: SimulatedNode, records: Any, offset: int, epoch: int) -> None:
        """A node has loaded a batch."""
        digest = hashlib.sha256(repr(list(records)).encode()).hexdigest()[:16]
        try:
            self.invariants.loaded(node, offset, epoch, digest)
        except BrokenError as error:
            self.broken = error
            raise

    def may_follow(self, node: SimulatedNode, image: Any) -> bool:
        """Whether a broker puts an image in force."""
        return node.broker_epoch >= 0 and image.offset >= node.broker_epoch

    def acknowledged(self, leader: SimulatedNode, key: Key, offset: int, value: bytes) -> None:
        """A producer has its answer."""
        self.trace("acknowledged", leader.number, offset, value.decode())
        partition = leader.broker.partitions.get(key) if leader.life is not None else None
        # The epoch of the append is not newer than the one now, so it claims less where it is not known.
        epoch = partition.leader_epoch if partition is not None else 10**9
        self.invariants.note_acknowledged(key, offset, value, epoch)

    def spoil(self, frame: bytes) -> bytes:
        """Plant a fault in a follower's request."""
        if not (self.faults.forgets_epochs or self.faults.fences_nobody):
            return frame
        header, size = decode(RequestHeader, frame, 2)
        request, _ = decode(FetchRequest, frame, header.request_api_version, size)
        for topic in request.topics:
            for partition in topic.partitions:
                if self.faults.forgets_epochs:
                    partition.last_fetched_epoch = -1
                else:
                    partition.current_leader_epoch = -1
        return encode(header, 2) + encode(request, header.request_api_version)


class WatchedLoader(Loader):
    """A loader whose batches are compared with those of all other nodes."""

    def load(self, records: Any, offset: int, epoch: int) -> None:
        """As `Loader.load`."""
        records = list(records)
        node = living()
        node.world.loaded(node, records, offset, epoch)
        super().load(records, offset, epoch)


class _All:
    def __init__(self, patches: list[Any]) -> None:
        self._patches = patches

    def __enter__(self) -> None:
        for one in self._patches:
            one.start()

    def __exit__(self, *_why: object) -> None:
        for one in self._patches:
            one.stop()


def _lagging_replicas(partitions: Any, plane: Any, *, max_lag_ms: int, alive: list[int]) -> list[Any]:
    found = [(place, plane.lagging(partition, max_lag_ms, alive)) for place, partition in enumerate(partitions)]
    return [(place, *lagging) for place, lagging in found if lagging is not None and lagging[1]]


def _stop_joining(partition: Any, plane: Any, replicas: list[int]) -> None:
    plane.stop_joining(partition, replicas)


def _describe(node: SimulatedNode) -> str:
    """What a node is and believes, for the words of a failure."""
    if node.life is None or not hasattr(node, "broker"):
        return f"{node.number} is down"
    own, image = node.controller, node.controller.image
    believed = {
        topic.name: (p.leader, p.leader_epoch, p.isr, p.eligible_leader_replicas)
        for topic in image.topics.by_id.values()
        for p in topic.partitions.values()
    }
    logs = [(p.role, p.leader_epoch, p.log_end_offset, p.high_watermark) for p in node.broker.partitions.values()]
    fenced = [broker.id for broker in image.cluster.brokers.values() if broker.fenced]
    return (
        f"{node.number}: open {node.is_open}, epoch {node.broker_epoch}, quorum {own.leader_id}@{own.leader_epoch}, "
        f"image {image.offset}/{node.in_force.offset}, fenced {fenced}, {believed}, {logs}"
    )
