"""Log directories of brokers: the directory of each replica, and partition changes when a directory fails (KIP-858).

Owns only these decisions. A replica in an offline directory cannot lead, and leaves the ISR unless it is the last one.
In that case the partition has no leader until the directory is back. A broker that has lost records of a replica first
reports the replica as lost, and then its directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.controller.cluster.availability import Rules, after_leaving
from pybroker.controller.cluster.events import AssignReplicas, LogDirectoriesFailed, Result
from pybroker.controller.cluster.partition_changes import build_change
from pybroker.controller.cluster.placement import is_usable
from pybroker.machine.machine import Outcome
from pybroker.metadata.replica_directories import LOST_DIRECTORY, directory_of, is_online
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.broker_registration_change import BrokerRegistrationChangeRecord

if TYPE_CHECKING:
    from collections.abc import Collection

    from pybroker.controller.cluster.elections import Usable
    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.metadata.image import BrokerRegistration, MetadataImage, PartitionImage
    from pybroker.protocol.schema import Message


def fail_log_directories(
    image: MetadataImage, event: LogDirectoriesFailed, settings: ClusterSettings
) -> Outcome[Message, Result]:
    """Decide about directories that a broker has lost; unknown directories, and those lost before, change nothing."""
    broker = _incarnation(image, event.broker_id, event.broker_epoch)
    if isinstance(broker, Result):
        return Outcome((), broker)
    lost = frozenset(event.directories).intersection(broker.log_dirs)
    if not lost:
        return Outcome((), Result())
    left = tuple(directory for directory in broker.log_dirs if directory not in lost)
    usable = usable_brokers(image, {broker.id: left})
    records: list[Message] = list(after_leaving(image, broker.id, usable, settings, lost))
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=list(left))
    return Outcome((*records, change), Result())


def assign_replicas(image: MetadataImage, event: AssignReplicas, settings: ClusterSettings) -> Outcome[Message, Result]:
    """Decide about replicas whose directories a broker reports; deleted partitions are skipped."""
    broker = _incarnation(image, event.broker_id, event.broker_epoch)
    if isinstance(broker, Result):
        return Outcome((), broker)
    usable, rules = usable_brokers(image), Rules(image, settings)
    records: list[Message] = []
    for (topic_id, index), directory in event.directories.items():
        topic = image.topics.by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None or broker.id not in partition.replicas:
            continue
        if directory_of(partition, broker.id) != directory:
            wanted = _assigned(partition, broker, directory, event.former_isr.get((topic_id, index), ()))
            lost = (broker.id,) if directory == LOST_DIRECTORY else ()
            change = build_change(topic_id, index, partition, wanted, usable=usable, rules=rules(topic), lost=lost)
            records += () if change is None else (change,)
    return Outcome(tuple(records), Result())


def usable_brokers(
    image: MetadataImage,
    log_dirs: dict[int, Collection[bytes]] | None = None,
    *,
    plus: int | None = None,
    but: int | None = None,
) -> Usable:
    """Return a function that decides whether a broker can lead a replica in a directory, based on the image.

    The broker `plus` is included and the broker `but` is excluded. `log_dirs` replaces the directories of brokers in
    the image.
    """

    def usable(broker_id: int, directory: bytes) -> bool:
        broker = image.cluster.brokers.get(broker_id)
        if broker_id == but or (broker_id != plus and (broker is None or not is_usable(broker))):
            return False
        named = () if broker is None else broker.log_dirs
        return is_online(directory, (log_dirs or {}).get(broker_id, named))

    return usable


def _assigned(
    partition: PartitionImage, broker: BrokerRegistration, directory: bytes, former_isr: tuple[int, ...]
) -> PartitionImage:
    """Return the partition with a replica in this directory; in an offline directory the replica is not in sync.

    The last replica that may lead stays in sync. If it is lost, the last one of the `former_isr` is in sync instead:
    as far as its broker knows, that replica lacks no records (docs/adr/0104).
    """
    directories = (
        directory if replica == broker.id else directory_of(partition, replica) for replica in partition.replicas
    )
    isr = partition.isr
    if not is_online(directory, broker.log_dirs):
        others = tuple(replica for replica in isr if replica != broker.id)
        former = tuple(replica for replica in former_isr if replica != broker.id and replica in partition.replicas)
        if others or any(replica != broker.id for replica in partition.eligible_leader_replicas):
            isr = others
        elif directory == LOST_DIRECTORY and former:
            isr = former[-1:]
    return msgspec.structs.replace(partition, directories=tuple(directories), isr=isr)


def _incarnation(image: MetadataImage, broker_id: int, epoch: int) -> BrokerRegistration | Result:
    broker = image.cluster.brokers.get(broker_id)
    if broker is None:
        return Result(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    if broker.epoch != epoch:
        message = f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}"
        return Result(ErrorCode.STALE_BROKER_EPOCH, message)
    return broker
