"""One partition's cluster under a random schedule: the real cluster machine, and replicas whose logs are lists.

Brokers fall silent, come back, restart with or without what they had, and stop in order; followers catch up and fall
behind; leaders ask for other in-sync replicas. A record is acknowledged when every in-sync replica has it and the
replicas in sync are as many as `min.insync.replicas`. What holds after each event is in `check`.
"""

from __future__ import annotations

import random
from typing import Any

from pybroker.controller.cluster import events
from pybroker.controller.cluster.machine import ClusterMachine
from pybroker.controller.cluster.settings import ClusterSettings
from pybroker.controller.cluster.whole_requests import whole_creation
from pybroker.metadata.features import INITIAL_LEVELS
from pybroker.metadata.image import NO_LEADER, PartitionImage
from pybroker.metadata.in_sync import InSyncChange
from pybroker.protocol.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from pybroker.protocol.messages.create_topics import CreatableTopicConfig
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from tests.support.config_rules import BadIsWrong

TOPIC = b"t" * 16
STEPS = 60
FEATURES = {
    "metadata.version": (7, 25),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}


class World:
    """A schedule from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.machine = ClusterMachine(ClusterSettings(1, 1, 9000, BadIsWrong(), 1000, 0, 1000, 500))
        self.brokers = self.random.randint(1, 5)
        self.keeps_eligible = self.random.random() < 0.6
        self.min_isr = self.random.randint(1, 3)
        self.epochs = 100
        self.now = 0
        self.records = 0
        # What each broker has, in the order in which the leader wrote it, and how much of that is on its disk.
        self.logs: dict[int, list[int]] = {broker: [] for broker in range(self.brokers)}
        self.durable = dict.fromkeys(range(self.brokers), 0)
        self.running: set[int] = set()
        self.acknowledged: set[int] = set()
        self.stopped_epoch: dict[int, int] = {}

    def run(self) -> None:
        """Play the schedule."""
        for name, level in INITIAL_LEVELS.items():
            self.machine.apply(FeatureLevelRecord(name=name, feature_level=level))
        if self.keeps_eligible:
            self.machine.apply(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))
        for broker in range(self.brokers):
            self.start(broker)
        factor = self.random.randint(1, self.brokers)
        configs = [CreatableTopicConfig(name="min.insync.replicas", value=str(min(self.min_isr, factor)))]
        topic = events.NewTopic(name="t", num_partitions=1, replication_factor=factor, configs=configs)
        self.min_isr = min(self.min_isr, factor)
        self.submit(events.CreateTopics([topic], [TOPIC], self.random.randrange(99), whole_creation([topic], 1)))
        steps = (self.write, self.write, self.catch_up, self.catch_up, self.sync, self.sync, self.go, self.come_back)
        more = (self.balance, self.reassign, self.shut_down)
        for _ in range(STEPS):
            self.now += 100
            self.random.choice(steps if self.random.random() < 0.85 else more)()
            self.check()

    @property
    def partition(self) -> PartitionImage:
        """The partition as the controller has it."""
        return self.machine.image.topics.by_id[TOPIC].partitions[0]

    def submit(self, event: Any) -> Any:
        """Decide and commit; brokers follow at once."""
        before = self.machine.image.topics.by_id.get(TOPIC)
        outcome = self.machine.handle(event, self.now)
        for record in outcome.records:
            self.machine.apply(record)
        if before is not None:
            proposed = event.changes[0].isr if isinstance(event, events.AlterPartitions) else ()
            self.follow(before.partitions[0], {broker for broker, _ in proposed})
        return outcome.reply

    def follow(self, before: PartitionImage, proposed: set[int]) -> None:
        """A new leader's log is what the others have from then on, in sync or when they catch up."""
        now = self.partition
        if now.leader not in (before.leader, NO_LEADER):
            # Who joins the ISR may lead at once, where that is the end of a reassignment.
            safe = {*before.isr, *before.eligible_leader_replicas, *proposed}
            assert now.leader in safe or now.leader_recovery_state == 1
            if now.leader not in safe:
                # An unclean election loses what only the others had; it says so by the recovery state.
                self.acknowledged &= set(self.logs[now.leader])
            for broker in now.isr:
                self.truncate(broker)

    def truncate(self, broker: int) -> None:
        """Drop what the leader does not have."""
        leader, log = self.logs[self.partition.leader], self.logs[broker]
        same = next((n for n, (one, other) in enumerate(zip(log, leader, strict=False)) if one != other), None)
        end = min(len(log), len(leader)) if same is None else same
        self.logs[broker] = log[:end]
        self.durable[broker] = min(self.durable[broker], end)

    def check(self) -> None:
        """What holds after every event."""
        partition, brokers = self.partition, self.machine.image.cluster.brokers
        assert set(partition.isr) <= set(partition.replicas)
        assert not set(partition.isr) & set(partition.eligible_leader_replicas)
        if partition.leader == NO_LEADER:
            return
        assert partition.leader in partition.isr
        assert not brokers[partition.leader].fenced
        missing = self.acknowledged - set(self.logs[partition.leader])
        assert not missing, f"broker {partition.leader} leads without {sorted(missing)}"

    def start(self, broker: int) -> None:
        """Register, and be unfenced."""
        self.epochs += 1
        registered = self.submit(
            events.RegisterBroker(
                broker_id=broker,
                incarnation_id=self.epochs.to_bytes(16),
                listeners={"P": ("h", 1)},
                security_protocols={"P": 0},
                epoch=self.epochs,
                rack=f"r{broker % 2}",
                features=FEATURES,
                previous_broker_epoch=self.stopped_epoch.pop(broker, -1),
            )
        )
        self.submit(events.Heartbeat(broker, registered.broker_epoch))
        self.running.add(broker)

    def epoch_of(self, broker: int) -> int:
        return self.machine.image.cluster.brokers[broker].epoch

    def write(self) -> None:
        """The leader takes a record, and acknowledges what all in sync have."""
        leader = self.partition.leader
        if leader in self.running:
            self.records += 1
            self.logs[leader].append(self.records)
            self.acknowledge()

    def acknowledge(self) -> None:
        """Acknowledge what every replica in sync has, where they are enough."""
        partition = self.partition
        if partition.leader in self.running and len(partition.isr) >= self.min_isr:
            self.acknowledged.update(set.intersection(*(set(self.logs[broker]) for broker in partition.isr)))

    def catch_up(self) -> None:
        """A follower fetches some, or all."""
        partition = self.partition
        followers = [one for one in partition.replicas if one != partition.leader and one in self.running]
        if partition.leader not in self.running or not followers:
            return
        broker = self.random.choice(followers)
        self.truncate(broker)
        lacking = self.logs[partition.leader][len(self.logs[broker]) :]
        self.logs[broker] += lacking[: self.random.randint(0, len(lacking))]
        self.acknowledge()

    def sync(self) -> None:
        """A disk writes, and the leader asks for the replicas that have caught up, without one that has not."""
        broker = self.random.choice(sorted(self.logs))
        self.durable[broker] = len(self.logs[broker])
        partition = self.partition
        if partition.leader not in self.running:
            return
        end = self.logs[partition.leader]
        isr = [one for one in partition.replicas if one in self.running and self.logs[one] == end]
        wanted = tuple((one, self.epoch_of(one)) for one in dict.fromkeys([*isr, partition.leader]))
        change = InSyncChange(TOPIC, 0, partition.leader_epoch, partition.partition_epoch, wanted)
        self.submit(events.AlterPartitions(partition.leader, self.epoch_of(partition.leader), [change]))
        self.acknowledge()

    def go(self) -> None:
        """A broker falls silent: it is fenced, and its process ends, without what its disk did not have."""
        if self.running:
            broker = self.random.choice(sorted(self.running))
            self.running.remove(broker)
            self.submit(events.SessionExpired(broker, self.epoch_of(broker)))
            if self.keeps_eligible:
                # Without eligible replicas the last one in sync is trusted with what it had, as in Kafka.
                self.logs[broker] = self.logs[broker][: self.durable[broker]]

    def come_back(self) -> None:
        """A broker that is away starts again."""
        away = sorted(self.logs.keys() - self.running)
        if away:
            self.start(self.random.choice(away))

    def shut_down(self) -> None:
        """A broker stops in order: it hands leadership over, and its disk has all."""
        if not self.running:
            return
        broker = self.random.choice(sorted(self.running))
        reply = self.submit(events.Heartbeat(broker, self.epoch_of(broker), want_shut_down=True))
        if reply.should_shut_down:
            self.running.remove(broker)
            self.durable[broker] = len(self.logs[broker])
            self.stopped_epoch[broker] = self.epoch_of(broker)

    def balance(self) -> None:
        """The controller looks for displaced leaders and for partitions without one."""
        self.submit(events.BalanceLeaders())
        self.submit(events.ElectUncleanly())

    def reassign(self) -> None:
        """Somebody wants other replicas, or cancels that."""
        count = self.random.randint(1, self.brokers)
        target = None if self.random.random() < 0.3 else self.random.sample(range(self.brokers), count)
        requested = [ReassignablePartition(partition_index=0, replicas=target)]
        self.submit(events.AlterReassignments([ReassignableTopic(name="t", partitions=requested)]))
