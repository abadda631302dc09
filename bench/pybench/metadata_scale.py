"""The controller at scale: the cluster machine with a hundred brokers and many partitions, without network or disk.

Every figure covers the controller's work from an event to a published image: decide, apply, build the image for the
next decision, encode the records, load them, publish. It excludes the write to the log. At its start, the process loads
a snapshot that another process has written, as a node does. It is a process of its own, so that its memory and peak
memory are those of the controller.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pybench.process import peak_resident_bytes, resident_bytes
from pybroker.broker.live_config import LiveConfig
from pybroker.config.broker import BrokerConfig
from pybroker.controller.cluster import events
from pybroker.controller.cluster.elections import leads_anything
from pybroker.controller.cluster.machine import ClusterMachine
from pybroker.controller.cluster.settings import ClusterSettings
from pybroker.controller.cluster.whole_requests import whole_creation
from pybroker.controller.quorum.snapshot.snapshots import newest_snapshot, read_snapshot, write_snapshot
from pybroker.metadata.features import INITIAL_LEVELS, RECORD_VERSIONS, SUPPORTED_FEATURES
from pybroker.metadata.loader import Loader
from pybroker.protocol.messages.alter_partition_reassignments import ReassignablePartition
from pybroker.protocol.messages.create_topics import CreatableReplicaAssignment
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.frame import decode_record, encode_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.schema import Message

BROKERS = 100
_PER_TOPIC = 1_000
_FACTOR = 3
_LEADS = 3_000
_DEAD = 7
_EPOCH = 1
_BUILD, _MEASURE = "build", "measure"


def measure_metadata_scale(partitions: int) -> tuple[str, dict[str, float]]:
    """Write a snapshot in one process, and measure in another. Returns the latter's command and the figures."""
    with tempfile.TemporaryDirectory(prefix="pybench-scale-") as folder:
        for step in (_BUILD, _MEASURE):
            command = [sys.executable, "-m", "pybench.metadata_scale", step, folder, str(partitions)]
            printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    shown = f"python -m pybench.metadata_scale {_MEASURE} DIRECTORY {partitions}"
    return shown, msgspec.json.decode(printed, type=dict[str, float])


class _Controller:
    """The cluster machine and the metadata loader of one voter."""

    def __init__(self, snapshot: Path | None = None) -> None:
        config = BrokerConfig({})
        self._settings = ClusterSettings(1, _FACTOR, config.broker_session_timeout_ms, LiveConfig(config))
        self.loader = Loader()
        self.offset = -1
        if snapshot is None:
            self._load([FeatureLevelRecord(name=name, feature_level=level) for name, level in INITIAL_LEVELS.items()])
        else:
            for batch in read_snapshot(snapshot):
                self.offset = batch.last_offset
                self.loader.load(map(decode_record, batch.values), batch.last_offset, batch.epoch)
        self.loader.publish()
        self.machine = ClusterMachine(self._settings, self.loader.image)

    def submit(self, event: Any) -> None:
        """Decide and publish. The records are encoded but not written."""
        draft = self.machine.draft()
        outcome = draft.handle(event, 0)
        for record in outcome.records:
            draft.apply(record)
        for record in outcome.records:
            encode_record(record, RECORD_VERSIONS[type(record).__name__])
        self.machine = draft.keep()
        _ = self.machine.image
        self._load(outcome.records)
        self.loader.publish()

    def _load(self, records: Sequence[Message]) -> None:
        self.offset += len(records)
        self.loader.load(records, self.offset, _EPOCH)


def _build(partitions: int) -> MetadataImage:
    """Return the metadata of a cluster in which one broker leads `_LEADS` partitions, or all if there are fewer."""
    controller = _Controller()
    for broker in range(BROKERS):
        controller.submit(_registration(broker))
        epoch = controller.machine.image.cluster.brokers[broker].epoch
        controller.submit(events.Heartbeat(broker, epoch))
    leads = min(_LEADS, partitions)
    for number, start in enumerate(range(0, partitions, _PER_TOPIC)):
        count = min(_PER_TOPIC, partitions - start)
        controller.submit(_creation(number, count, fixed=start < leads))
    return controller.loader.image


def _registration(broker: int) -> events.RegisterBroker:
    return events.RegisterBroker(
        broker_id=broker,
        incarnation_id=broker.to_bytes(16),
        listeners={"PLAINTEXT": (f"broker-{broker}.example.org", 9092)},
        security_protocols={"PLAINTEXT": 0},
        epoch=broker + 1,
        rack=f"rack-{broker % 5}",
        log_dirs=((broker + 1).to_bytes(8) * 2,),
        features=SUPPORTED_FEATURES,
    )


def _creation(number: int, count: int, *, fixed: bool) -> events.CreateTopics:
    topic = events.NewTopic(name=f"topic-{number}", num_partitions=count, replication_factor=_FACTOR)
    if fixed:
        replicas = (
            [_DEAD, *((_DEAD + 1 + (index + k) % (BROKERS - 1)) % BROKERS for k in (0, 1))] for index in range(count)
        )
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in enumerate(replicas)
        ]
        topic = events.NewTopic(
            name=f"topic-{number}", num_partitions=-1, replication_factor=-1, assignments=assignments
        )
    return events.CreateTopics([topic], [(number + 1).to_bytes(4) * 4], number * 7919, whole_creation([topic], 1))


def _measure(directory: Path, partitions: int) -> dict[str, float]:
    begun = time.perf_counter()
    snapshot = newest_snapshot(directory)
    if snapshot is None:
        raise SystemExit(f"{directory}: no snapshot is here")
    controller = _Controller(snapshot.path)
    loaded = time.perf_counter()
    resident = resident_bytes(os.getpid()) / 2**20
    dead = controller.machine.image.cluster.brokers[_DEAD]
    by_id = controller.machine.image.topics.by_id
    leads = sum(partition.leader == _DEAD for topic in by_id.values() for partition in topic.partitions.values())
    failed = time.perf_counter()
    controller.submit(events.SessionExpired(_DEAD, dead.epoch))
    elected = time.perf_counter()
    if leads_anything(controller.loader.image, _DEAD):
        raise SystemExit("a dead broker leads a partition")
    creating = time.perf_counter()
    controller.submit(_creation(partitions // _PER_TOPIC + 1, _PER_TOPIC, fixed=False))
    created = time.perf_counter()
    topic_id, index = next(iter(controller.machine.image.topics.index.by_broker[_DEAD + 1]))
    name = controller.machine.image.topics.by_id[topic_id].name
    changing = time.perf_counter()
    requested = events.ReassignableTopic(
        name=name, partitions=[ReassignablePartition(partition_index=index, replicas=[1, 2, 3, 4])]
    )
    controller.submit(events.AlterReassignments([requested]))
    changed = time.perf_counter()
    return {
        "records": float(partitions),
        "seconds": changed - begun,
        "load_s": loaded - begun,
        "leads": float(leads),
        "failover_s": elected - failed,
        "create_s": created - creating,
        "one_change_ms": (changed - changing) * 1000,
        "resident_mib": resident,
        "peak_mib": peak_resident_bytes(os.getpid()) / 2**20,
    }


def _main(step: str, directory: Path, partitions: int) -> None:
    if step == _BUILD:
        image = _build(partitions)
        write_snapshot(directory, image, image.offset + 1, image.epoch, image.offset, 0)
    else:
        print(msgspec.json.encode(_measure(directory, partitions)).decode())


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
