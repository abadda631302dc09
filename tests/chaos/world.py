"""A cluster of broker processes under load and faults, from its start to the verdict.

Owns processes, namespaces and mounts from `begin` to `end`. After the faults it mends all, waits until every replica
is in sync, reads everything, stops the brokers, and compares what they have on disk. Stands on
`pybroker.local_cluster`.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import LATEST, NewTopic, PartitionDescription, TopicPartition
from pybroker.client.errors import BrokerError, ClientError
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.local_cluster.cluster import LocalCluster
from pybroker.local_cluster.layout import NodePorts
from pybroker.local_cluster.process import NodeFailedError
from tests.chaos import replicas
from tests.chaos.checker import Violation, check
from tests.chaos.faults import DISK_KINDS, NETWORK_KINDS, PROCESS_KINDS, Fault, Kind
from tests.chaos.history import Commit, History, Where
from tests.chaos.leader_epochs import leader_epochs
from tests.chaos.network import CLIENTS, Network
from tests.chaos.workload import PARTITIONS, EndReader, GroupMember, Sender, read_to_end
from tests.support.conditions import wait_until
from tests.support.processes import free_port

PLAIN, COMPACTED = "plain", "compacted"
TOPICS = [PLAIN, COMPACTED]
GROUPS = {"classic": "classic", "modern": "consumer"}
REPLICAS = 3
DISK_MEBIBYTES = 512
_HEALED_S = 90.0
_PORTS_OF_NAMESPACES = NodePorts(9092, 9093)

_SETTINGS = {
    "num.network.threads": "1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "log.cleaner.backoff.ms": "1000",
    "log.segment.bytes": str(1 << 20),
    "controlled.shutdown.enable": "true",
    "replica.lag.time.max.ms": "5000",
    # So that snapshots of the metadata log are made, and loaded, within minutes.
    "metadata.log.max.record.bytes.between.snapshots": "65536",
}


class World:
    """A cluster with its clients. `network` and `disk` say what it may disturb besides processes."""

    def __init__(
        self,
        directory: Path,
        note: Callable[[str], None],
        *,
        brokers: int = 3,
        network: Network | None = None,
        small_disks: bool = False,
        rate: int = 300,
    ) -> None:
        self.history = History(compacted={COMPACTED})
        self._directory = directory
        self._note = note
        self._network = network
        self._small_disks = small_disks
        self._rate = rate
        numbers = range(1, brokers + 1)
        if network is None:
            ports = [NodePorts(free_port(), free_port()) for _ in numbers]
            self.cluster = LocalCluster(directory, ports, _SETTINGS)
        else:
            ports = [_PORTS_OF_NAMESPACES._replace(host=network.address(number)) for number in numbers]
            wrappers = {number: network.wrapper(number) for number in numbers}
            self.cluster = LocalCluster(directory, ports, _SETTINGS, wrappers)
        self.brokers = tuple(numbers)
        self.senders: list[Sender] = []
        self.members: list[GroupMember] = []
        self._readers: list[EndReader] = []
        self._clock = threading.Event()

    def begin(self) -> None:
        """Start brokers and clients, and return when records are acknowledged."""
        if self._network is not None:
            self._network.begin()
        if self._small_disks:
            for node in self.cluster.nodes:
                node.directory.mkdir(parents=True)
                _command("mount", "-t", "tmpfs", "-o", f"size={DISK_MEBIBYTES}m", "tmpfs", str(node.directory))
        self.cluster.start()
        compaction = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "5000"}
        with self.admin() as admin:
            admin.create_topics(
                [
                    NewTopic(PLAIN, PARTITIONS, REPLICAS),
                    NewTopic(COMPACTED, PARTITIONS, REPLICAS, compaction),
                ]
            )
        self._begin_clients()
        wait_until(lambda: all(one.acknowledged for one in self.senders), within=60, what="records are acknowledged")

    def disturb(self, fault: Fault) -> None:
        """Do one fault, mend it, and let the cluster be for a while."""
        self._note(f"fault: {fault}")
        getattr(self, f"_{fault.kind.name.lower()}")(fault)
        self._note("mended")
        self._wait(fault.quiet_s)

    def finish(self) -> list[Violation]:
        """Mend all, stop the clients, read everything; return what the checker finds, and what replicas differ in."""
        self._mend()
        self._wait_in_sync()
        self._note("all replicas are in sync")
        for client in [*self.senders, *self._readers]:
            client.finish(within=140)
        self._wait_drained()
        self._note("groups have read to the end")
        for member in self.members:
            member.finish(within=60)
        self._wait_in_sync()
        self.history.final = read_to_end(self.servers, TOPICS, within=60)
        self.history.drained = set(GROUPS)
        with self.admin() as admin:
            described = {one.name: one.partitions for one in admin.describe_topics([PLAIN])}
        self.cluster.stop()
        self._note("brokers have stopped")
        metadata_logs = [node.data / DIRECTORY_NAME for node in self.cluster.nodes]
        self.history.leader_epochs = leader_epochs(metadata_logs, clock_s=time.time() - time.monotonic())
        known = {(where, one.epoch) for where, epochs in self.history.leader_epochs.items() for one in epochs}
        unknown = {(end.where, end.leader_epoch) for end in self.history.ends} - known
        assert not unknown, f"leaders answered under epochs that are not in the metadata log: {sorted(unknown)}"
        return check(self.history) + list(self._compare(described[PLAIN]))

    def end(self) -> None:
        """End all processes, whatever happened, and remove namespaces and mounts."""
        self.cluster.kill_all()
        for client in [*self.senders, *self.members, *self._readers]:
            client.stop()
        if self._network is not None:
            self._network.end()
        if self._small_disks:
            for node in self.cluster.nodes:
                # What a broker has logged outlives its disk.
                with contextlib.suppress(OSError):
                    shutil.copyfile(node.log, self._directory / f"broker-{node.node_id}.log")
                subprocess.run(["umount", "--lazy", str(node.directory)], capture_output=True, check=False)

    @property
    def servers(self) -> str:
        """Where clients begin."""
        return self.cluster.bootstrap_servers

    def admin(self) -> Admin:
        """An admin client; the caller closes it."""
        return Admin(self.servers, {"default.api.timeout.ms": 20_000, "request.timeout.ms": 5000})

    def logs(self, characters: int = 4000) -> str:
        """The last words of every broker."""
        return "\n".join(
            f"--- broker {node.node_id}\n{node.log.read_text(errors='replace')[-characters:]}"
            for node in self.cluster.nodes
            if node.log.exists()
        )

    def _begin_clients(self) -> None:
        for topic in TOPICS:
            for number in range(2):
                name = f"{topic}-{number}"
                keyed = topic == COMPACTED
                self.senders.append(Sender(name, self.history, self.servers, topic, self._rate, keyed=keyed))
        for group, protocol in GROUPS.items():
            for number in range(2):
                name = f"{group}-{number}"
                self.members.append(GroupMember(name, self.history, self.servers, TOPICS, group, protocol))
        self._readers.append(EndReader("ends", self.history, self.servers, TOPICS))
        for client in [*self.senders, *self.members, *self._readers]:
            client.daemon = True
            client.start()

    def _wait(self, seconds: float) -> None:
        """Let the cluster run under load for a time: a fault has a length."""
        self._clock.wait(seconds)

    # Faults, by the names of their kinds.

    def _kill(self, fault: Fault) -> None:
        self.cluster.kill_node(fault.brokers[0])
        self._wait(fault.seconds)
        self.cluster.start_nodes([fault.brokers[0]])

    def _kill_all(self, _fault: Fault) -> None:
        for broker in self.brokers:
            self.cluster.kill_node(broker)
        self.cluster.start_nodes(self.brokers)

    def _pause(self, fault: Fault) -> None:
        self.cluster.pause_node(fault.brokers[0])
        self._wait(fault.seconds)
        self.cluster.resume_node(fault.brokers[0])

    def _restart(self, fault: Fault) -> None:
        self.cluster.stop_node(fault.brokers[0])
        self.cluster.start_nodes([fault.brokers[0]])

    def _rolling(self, fault: Fault) -> None:
        for broker in fault.brokers:
            self.cluster.stop_node(broker)
            self.cluster.start_nodes([broker])
            self._wait_in_sync()

    def _reassign(self, fault: Fault) -> None:
        """Move partitions to other brokers where there are more than replicas; else change who is preferred."""
        count = len(fault.brokers)
        targets = {
            TopicPartition(topic, index): tuple(fault.brokers[(index + step) % count] for step in range(REPLICAS))
            for topic in TOPICS
            for index in range(PARTITIONS)
        }
        with self.admin() as admin, self._looked_past():
            admin.alter_partition_reassignments(targets)

    def _elect(self, _fault: Fault) -> None:
        with self.admin() as admin, self._looked_past():
            admin.elect_leaders(None)

    def _partition(self, fault: Fault) -> None:
        node, *others = fault.brokers
        self._without(fault, [(node, other) for other in others] + [(other, node) for other in others])

    def _partition_out(self, fault: Fault) -> None:
        node, *others = fault.brokers
        self._without(fault, [(node, other) for other in others])

    def _partition_in(self, fault: Fault) -> None:
        node, *others = fault.brokers
        self._without(fault, [(other, node) for other in others])

    def _partition_clients(self, fault: Fault) -> None:
        self._without(fault, [(fault.brokers[0], CLIENTS), (CLIENTS, fault.brokers[0])])

    def _partition_pair(self, fault: Fault) -> None:
        one, other = fault.brokers[:2]
        self._without(fault, [(one, other), (other, one)])

    def _without(self, fault: Fault, dropped: Collection[tuple[int, int]]) -> None:
        assert self._network is not None
        for source, target in dropped:
            self._network.drop(source, target)
        self._wait(fault.seconds)
        self._network.mend()

    def _full_disk(self, fault: Fault) -> None:
        """Fill a broker's disk to the last byte; it may end itself, and is started again when there is space."""
        node = self.cluster.node(fault.brokers[0])
        ballast = node.directory / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(bytes(1 << 16)):
                pass
        self._wait(fault.seconds)
        ballast.unlink()
        self._note(f"broker {node.node_id} {'runs' if node.node_id in self.cluster.running else 'has ended itself'}")
        # A directory that failed stays failed until its broker starts anew.
        if node.node_id in self.cluster.running:
            with contextlib.suppress(NodeFailedError):
                self.cluster.stop_node(node.node_id)
        self.cluster.start_nodes([node.node_id])

    def _mend(self) -> None:
        if self._network is not None:
            self._network.mend()
        for broker in self.cluster.running:
            self.cluster.resume_node(broker)
        ended = [broker for broker in self.brokers if broker not in self.cluster.running]
        assert not ended, f"brokers {ended} have ended by themselves"

    @contextlib.contextmanager
    def _looked_past(self) -> Iterator[None]:
        """A wish that a disturbed cluster could not fulfil is noted."""
        try:
            yield
        except (BrokerError, ClientError) as error:
            self._note(f"not done: {error}")

    def _wait_in_sync(self) -> None:
        last: list[object] = []

        def is_whole() -> bool:
            try:
                with self.admin() as admin:
                    topics = admin.describe_topics([*TOPICS, "__consumer_offsets"])
                    moving = admin.list_partition_reassignments()
            except (BrokerError, ClientError) as error:
                last[:] = [error]
                return False
            partitions = [(topic.name, one) for topic in topics for one in topic.partitions]
            last[:] = [(name, one) for name, one in partitions if not _is_whole(one)]
            last.extend(moving)
            return not last

        wait_until(is_whole, within=_HEALED_S, what=lambda: f"all replicas are in sync: {last}")

    def _wait_drained(self) -> None:
        """Wait until the groups have committed the ends of all partitions, and remember what they have committed."""
        wanted = {TopicPartition(topic, index): LATEST for topic in TOPICS for index in range(PARTITIONS)}
        last: list[object] = []

        def is_drained() -> bool:
            try:
                with self.admin() as admin:
                    ends = {where: one.offset for where, one in admin.list_offsets(wanted).items()}
                    begun = time.monotonic()
                    committed = {group: admin.list_group_offsets(group) for group in GROUPS}
            except (BrokerError, ClientError) as error:
                last[:] = [error]
                return False
            last[:] = []
            for group, offsets in committed.items():
                for where, end in ends.items():
                    at = offsets.get(where)
                    offset = -1 if at is None else getattr(at, "offset", -1)
                    read = Commit(Where(*_pair(where)), group, offset, begun, time.monotonic(), is_read=True)
                    self.history.commits.append(read)
                    if offset < end:
                        last.append(f"group {group} is at {offset} of {end} in {where.topic}-{where.partition}")
            return not last

        wait_until(is_drained, within=_HEALED_S, what=lambda: f"groups have read all: {last}")

    def _compare(self, partitions: Collection[PartitionDescription]) -> Iterator[Violation]:
        for one in partitions:
            directories = {
                broker: self.cluster.node(broker).data / f"{PLAIN}-{one.index}" for broker in sorted(one.replicas)
            }
            for found in replicas.differences(directories):
                yield Violation("replicas differ", Where(PLAIN, one.index), found)


def all_kinds(network: bool, small_disks: bool) -> list[Kind]:
    """Return the kinds of faults that a world with these can do."""
    return [*PROCESS_KINDS, *(NETWORK_KINDS if network else ()), *(DISK_KINDS if small_disks else ())]


def _is_whole(one: PartitionDescription) -> bool:
    return one.leader >= 0 and set(one.isr) == set(one.replicas) and not one.offline_replicas


def _pair(where: TopicPartition) -> tuple[str, int]:
    return where.topic, where.partition


def _command(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip()}"
