"""The replicas of a broker: its logs, and their metadata publisher.

Must not know clients, coordinators, nor the quorum.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from pybroker.broker.shut_down import Stage
from pybroker.net.native import Exhausted, ReplicaCaughtUp, ReplicaDeletedRecords, SegmentRolled
from pybroker.node.measuring import of_cleaner, of_in_sync, of_logs
from pybroker.replica.deletions import Deletions
from pybroker.replica.in_sync import InSyncReplicas
from pybroker.replica.lag_checks import LagChecks
from pybroker.replica.publisher import PartitionPublisher
from pybroker.storage.maintenance import Maintenance
from pybroker.storage.partitions import Partitions
from pybroker.storage.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.broker.registration import Registration
    from pybroker.config.broker import BrokerConfig
    from pybroker.controller.switching_channel import SwitchingChannel
    from pybroker.metadata.image import MetadataImage
    from pybroker.node.foundation import Foundation
    from pybroker.node.listening import Listening

log = logging.getLogger("pybroker")


class Replicas(msgspec.Struct, frozen=True, eq=False):
    """The logs of a broker and the parts that manage their roles."""

    workers: Workers
    partitions: Partitions
    publisher: PartitionPublisher
    in_sync: InSyncReplicas
    deletions: Deletions
    lag_checks: LagChecks


def build_replicas(
    foundation: Foundation,
    listening: Listening,
    registration: Registration,
    channel: SwitchingChannel,
    follow: Callable[[MetadataImage], None],
) -> Replicas:
    """Return the replicas, with no partition open. `follow` is called with each image that they have applied."""
    config, directories, live = foundation.config, foundation.directories, foundation.live
    failures, end, data_plane = foundation.failures, foundation.shut_down.add, listening.data_plane
    workers = Workers(live.current.num_recovery_threads_per_data_dir * len(directories.logs))
    end(Stage.WORKERS, workers, workers.shutdown)
    partitions = Partitions(directories, foundation.clock.wall_ms, failures.report_directory)

    async def close_logs() -> None:
        threads, clean = live.current.num_recovery_threads_per_data_dir, foundation.shut_down.is_clean
        await asyncio.to_thread(partitions.close, threads, registration.epoch, clean=clean)

    end(Stage.LOGS, "closing of the logs, which the next start recovers", close_logs)
    partitions.scan()
    for path, count in partitions.to_recover.items():
        log.info("recovering %d partitions in %s, as the last run did not stop cleanly", count, path)
    publisher = PartitionPublisher(config, partitions, data_plane, workers, follow, registration.report_placed)
    end(Stage.ROLES, publisher, publisher.stop)
    publisher.hold()
    in_sync = InSyncReplicas(
        config.node_id,
        data_plane,
        image=lambda: publisher.image_in_force,
        find=partitions.get,
        alter_partitions=lambda changes: channel.active().alter_partitions(config.node_id, registration.epoch, changes),
        broker_epoch=lambda: registration.epoch,
    )
    listening.events.on(ReplicaCaughtUp, in_sync.caught_up)
    lag_checks = LagChecks(in_sync, partitions.all, lambda: live.current)
    end(Stage.ROLES, lag_checks, lag_checks.stop)
    end(Stage.ROLES, in_sync, in_sync.stop)
    deletions = Deletions(
        data_plane, image=lambda: publisher.image_in_force, find=partitions.get, is_lost=partitions.is_lost
    )
    listening.events.on(ReplicaDeletedRecords, deletions.deleted)
    failures.on_lost_directory(publisher.directory_failed)
    failures.on_survived(registration.report_failed_directories)

    def size_workers(changed: BrokerConfig) -> None:
        workers.resize(changed.num_recovery_threads_per_data_dir * len(directories.logs))

    live.subscribe(size_workers)
    live.subscribe(publisher.reconfigure)
    foundation.metrics.add(partial(of_in_sync, in_sync))
    foundation.metrics.add(partial(of_logs, partitions, publisher, directories))
    return Replicas(workers, partitions, publisher, in_sync, deletions, lag_checks)


def build_maintenance(foundation: Foundation, listening: Listening, replicas: Replicas) -> Maintenance:
    """Return the background tasks of the logs, not started."""
    live, failures, end = foundation.live, foundation.failures, foundation.shut_down.add
    maintenance = Maintenance(
        replicas.partitions,
        foundation.directories,
        replicas.workers,
        foundation.clock,
        config_of=lambda: live.current,
        settings_of=replicas.publisher.settings_of,
        log_files=foundation.shares.log_files,
        directory_failed=failures.report_directory,
        moved=replicas.publisher.moved,
    )
    listening.events.on(Exhausted, lambda event: maintenance.open_files.step_exhausted(event.error))
    listening.events.on(SegmentRolled, lambda event: maintenance.flush_rolled(event.topic, event.index))
    end(Stage.MAINTENANCE, maintenance, maintenance.end)
    end(Stage.FLUSHES, "flushing of rolled logs", maintenance.flushed)
    failures.on_lost_directory(lambda _path: maintenance.moves.give_up_failed())
    live.subscribe(maintenance.reconfigure)
    foundation.metrics.add(partial(of_cleaner, maintenance))
    return maintenance
