"""What holds in a simulated cluster after every event.

Owns what was seen: leaders, what was acknowledged, what was committed, the history of the metadata. Must not know
why anything happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.controller.cluster.partition_changes import RECOVERING
from pybroker.metadata.image import EMPTY_IMAGE

if TYPE_CHECKING:
    from pybroker._native import Partition
    from tests.simulation.simulated_broker import Key
    from tests.simulation.simulated_node import SimulatedNode


class BrokenError(AssertionError):
    """Something that always holds does not."""


class Invariants:
    """See the module."""

    def __init__(self) -> None:
        # The leader of a partition in each epoch, and the highest watermark that was seen there.
        self._leaders: dict[tuple[Key, int], int] = {}
        self._watermarks: dict[tuple[Key, int], int] = {}
        # The last one that the newest leader would give to consumers, behind its epoch.
        self._shown: dict[Key, tuple[int, int]] = {}
        # What was committed, by offset, and the epoch of the leader that showed it last.
        self.committed: dict[Key, list[bytes]] = {}
        self._committed_epoch: dict[Key, int] = {}
        # Value and leader epoch by offset.
        self.acknowledged: dict[Key, dict[int, tuple[bytes, int]]] = {}
        self._controllers: dict[int, int] = {}
        # Epoch and digest of the metadata's batches, by the offset of the last record; and the one before each.
        self._history: dict[int, tuple[int, int, str]] = {}
        self._reached: dict[tuple[int, int], int] = {}
        self._offsets: dict[int, int] = {}
        self.unclean_elections = 0
        # By partition whose leader may lack what was acknowledged or committed: the epoch of the last unclean election.
        # What an earlier leader reports that does not know of it yet need not stay.
        self.unclean: dict[Key, int] = {}
        # The newest that any node ever had.
        self._image = EMPTY_IMAGE

    # -------------------------------------------------------------------------------------------------- metadata

    def controls(self, node: int, epoch: int) -> None:
        """A voter leads the quorum."""
        known = self._controllers.setdefault(epoch, node)
        if known != node:
            raise BrokenError(f"voters {known} and {node} lead the quorum in epoch {epoch}")

    def loaded(self, node: SimulatedNode, last_offset: int, epoch: int, digest: str) -> None:
        """A node has loaded a batch of the metadata log as committed."""
        before = self._reached.get((node.number, node.lives), -1)
        known = self._history.setdefault(last_offset, (before, epoch, digest))
        if known != (before, epoch, digest):
            raise BrokenError(
                f"node {node.number} has other metadata at offset {last_offset}: {known} and {epoch, digest}"
            )
        self._reached[node.number, node.lives] = last_offset

    # ------------------------------------------------------------------------------------------------- partitions

    def began_to_lead(self, node: SimulatedNode, key: Key, partition: Partition, *, is_unclean: bool) -> None:
        """A broker leads a partition, from now on or on."""
        epoch = partition.leader_epoch
        known = self._leaders.get((key, epoch))
        if known is None and is_unclean:
            # It may lack what was acknowledged, and says so (KIP-704, KIP-966).
            self.unclean_elections += 1
            self.unclean[key] = epoch
            for kept in (self.committed, self.acknowledged, self._shown):
                kept.pop(key, None)
            if key[0][:1] == b"o":
                self._offsets.clear()
        if known is None:
            self._leaders[key, epoch] = node.number
            self._check_log(node, key, epoch)
        elif known != node.number:
            raise BrokenError(f"brokers {known} and {node.number} lead {_name(key)} in leader epoch {epoch}")

    def note_acknowledged(self, key: Key, offset: int, value: bytes, epoch: int) -> None:
        """A producer received that a record is on all in-sync replicas."""
        if self._is_outdated(key, epoch):
            return
        known = self.acknowledged.setdefault(key, {}).setdefault(offset, (value, epoch))
        if known[0] != value:
            raise BrokenError(f"{known[0]!r} and {value!r} were acknowledged at offset {offset} of {_name(key)}")

    def note_consumed(self, key: Key, offset: int, value: bytes) -> None:
        """A consumer has read a record."""
        committed = self.committed.get(key, [])
        if offset < len(committed) and committed[offset] != value:
            raise BrokenError(f"{value!r} was read at offset {offset} of {_name(key)}, not {committed[offset]!r}")

    def look(self, nodes: list[SimulatedNode]) -> None:
        """Look at all partitions of all brokers."""
        alive = [node for node in nodes if node.life is not None and hasattr(node, "broker")]
        for node in alive:
            for key, partition in node.broker.partitions.items():
                if partition.role == "leader":
                    self._look_at_leader(node, key, partition)
        for node in alive:
            if node.controller.image.offset > self._image.offset:
                self._image = node.controller.image
        for node in alive:
            self._look_at_in_sync(node, self._image)

    def note_offset(self, group_member: int, offset: int) -> None:
        """A commit of offsets was answered."""
        self._offsets[group_member] = max(offset, self._offsets.get(group_member, -1))

    def check_offset(self, group_member: int, known: int, found: int) -> None:
        """A coordinator says which offset is committed; `known` was answered before it was asked."""
        if found < known:
            raise BrokenError(f"the group's offset went back from {known} to {found} (member {group_member})")

    def is_leader(self, broker: int, topic: str) -> bool:
        """Whether the newest metadata has a broker lead a topic's only partition.

        A coordinator that is cut off answers from what it had until it knows its successor, as Kafka's does.
        """
        found = self._image.topics.by_name.get(topic)
        return found is not None and found.partitions[0].leader == broker

    def responded_offset(self, group_member: int) -> int:
        """The highest offset whose commit was answered."""
        return self._offsets.get(group_member, -1)

    def _look_at_leader(self, node: SimulatedNode, key: Key, partition: Partition) -> None:
        epoch, watermark = partition.leader_epoch, partition.high_watermark
        if self._leaders.get((key, epoch)) != node.number:
            raise BrokenError(
                f"broker {node.number} leads {_name(key)} in an epoch of {self._leaders.get((key, epoch))}"
            )
        seen = self._watermarks.get((key, epoch), -1)
        if watermark < seen:
            raise BrokenError(
                f"the high watermark of {_name(key)} went back from {seen} to {watermark} in epoch {epoch}"
            )
        self._watermarks[key, epoch] = watermark
        if self._is_outdated(key, epoch):
            return
        since, shown = self._shown.get(key, (epoch, 0))
        # A leader that lags its epoch answers no end (KIP-207); one that is cut off knows no newer end than its own.
        if epoch >= since and not partition.lags_its_epoch:
            if watermark < shown:
                raise BrokenError(
                    f"the end of {_name(key)} went back for consumers from {shown} to {watermark} in epoch {epoch}"
                )
            self._shown[key] = epoch, watermark
        committed = self.committed.setdefault(key, [])
        if watermark > len(committed):
            found = node.broker.records(key, len(committed))
            committed += [value for offset, _, value in found if offset < watermark]
            self._committed_epoch[key] = epoch

    def _is_outdated(self, key: Key, epoch: int) -> bool:
        """Whether an unclean election has followed this leader epoch."""
        return epoch < self.unclean.get(key, -1)

    def _check_log(self, node: SimulatedNode, key: Key, epoch: int) -> None:
        """A later leader has all that was committed, and all that was acknowledged."""
        log = {offset: value for offset, _, value in node.broker.records(key)}
        for offset, (value, since) in self.acknowledged.get(key, {}).items():
            if since < epoch and log.get(offset) != value:
                raise BrokenError(
                    f"broker {node.number} leads {_name(key)} in epoch {epoch} without {value!r}, acknowledged at "
                    f"offset {offset} in epoch {since}: it has {log.get(offset)!r} there, and {len(log)} records"
                )
        if self._committed_epoch.get(key, -1) < epoch:
            self._check_committed(f"leader {node.number} in epoch {epoch}", key, log)

    def _check_committed(self, who: str, key: Key, log: dict[int, bytes]) -> None:
        for offset, value in enumerate(self.committed.get(key, [])):
            if log.get(offset) != value:
                raise BrokenError(
                    f"{who} of {_name(key)} has {log.get(offset)!r} at offset {offset}, committed is {value!r}"
                )

    def _look_at_in_sync(self, node: SimulatedNode, image: Any) -> None:
        registered = image.cluster.brokers.get(node.number)
        if registered is None or registered.epoch != node.broker_epoch:
            return
        for key, partition in node.broker.partitions.items():
            topic = image.topics.by_id.get(key[0])
            known = None if topic is None else topic.partitions[key[1]]
            if known is None or node.number not in known.isr or known.leader_recovery_state == RECOVERING:
                continue
            committed = self.committed.get(key, [])
            if partition.log_end_offset < len(committed):
                raise BrokenError(
                    f"broker {node.number} is in sync of {_name(key)} and has {partition.log_end_offset} of "
                    f"{len(committed)} committed records"
                )

    def check_all(self, nodes: list[SimulatedNode]) -> None:
        """At the end, in peace: every replica has the same."""
        for key in self.committed:
            logs = [node.broker.records(key) for node in nodes]
            for node, log in zip(nodes, logs, strict=True):
                if log != logs[0]:
                    raise BrokenError(f"broker {node.number} has {log} of {_name(key)}, and broker 0 {logs[0]}")
            self._check_committed("broker 0", key, {offset: value for offset, _, value in logs[0]})
            held = {offset: value for offset, _, value in logs[0]}
            for offset, (value, _) in self.acknowledged.get(key, {}).items():
                if held.get(offset) != value:
                    raise BrokenError(
                        f"{value!r}, acknowledged at offset {offset} of {_name(key)}, is {held.get(offset)!r}"
                    )


def _name(key: Key) -> str:
    return f"{key[0][:1].decode()}-{key[1]}"
