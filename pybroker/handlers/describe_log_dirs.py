"""DescribeLogDirs: returns the partitions in this broker's log directories, and their free space.

Key
    35

Versions
    0-5

Behaviour
    - Every log directory by its absolute path, in the order of log.dirs, with its open partitions (of the requested
      ones; null for all): the bytes of their segments, and their offset lag.
    - A future replica (AlterReplicaLogDirs) is listed in its target directory with is_future_key, its bytes, and its
      lag behind the log in offsets.
    - KAFKA_STORAGE_ERROR without partitions for a directory that has failed, or whose volume cannot be checked.

Version notes
    - Version 0 is served although Kafka 4 does not serve it, since kafka-python uses it.
    - A top-level error code since version 3, the volume's size and free space since version 4, cordoning since version
      5.

Not done
    - Cordoning (KIP-1066): is_cordoned is always false.
    - Throttling.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.handlers.errors import wire_error
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.storage.moves import Move
    from pybroker.storage.native import Partition

_Requested = dict[str, set[int]]


class _Replica(NamedTuple):
    """A replica in a directory: a log, or the future replica of a log that is moved there."""

    partition: Partition
    move: Move | None = None

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.partition.topic


class _Volume(msgspec.Struct, frozen=True):
    """Total and usable bytes of the file system of a directory."""

    total: int
    usable: int


def _failed(_request: DescribeLogDirsRequest, _version: int, error: WireError) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=error.code)


@handles(DescribeLogDirsRequest, requires=[of_request(Operation.DESCRIBE, ResourceType.CLUSTER)], failed=_failed)
def describe_log_dirs(request: DescribeLogDirsRequest, context: BrokerContext) -> DescribeLogDirsResponse:
    """Describe each directory independently."""
    requested: dict[str, set[int]] | None = None
    if request.topics is not None:
        requested = {}
        for topic in request.topics:
            requested.setdefault(topic.topic, set()).update(topic.partitions)
    # Read first, so that a log whose move completes meanwhile is not listed as a future replica too.
    moves = context.services.moves.all()
    return DescribeLogDirsResponse(
        results=[
            _describe(
                directory.path,
                directory.offline,
                _replicas(partitions, [move for move in moves if move.target is directory]),
                requested,
            )
            for directory, partitions in context.services.partitions.by_directory().items()
        ]
    )


def _replicas(partitions: list[Partition], moves: list[Move]) -> list[_Replica]:
    return [
        *(_Replica(partition) for partition in partitions),
        *(_Replica(move.partition, move) for move in moves if move.partition not in partitions),
    ]


def _describe(
    path: Path, offline: bool, replicas: list[_Replica], requested: _Requested | None
) -> DescribeLogDirsResult:
    if offline:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(path))
    try:
        volume = _volume(path)
    except OSError as error:
        return DescribeLogDirsResult(error_code=wire_error(error).code, log_dir=str(path))
    return DescribeLogDirsResult(
        log_dir=str(path),
        topics=_topics(
            replica
            for replica in replicas
            if requested is None or replica.partition.index in requested.get(replica.topic, ())
        ),
        total_bytes=volume.total,
        usable_bytes=volume.usable,
    )


def _topics(replicas: Iterable[_Replica]) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for replica in replicas:
        topic = topics.setdefault(replica.topic, DescribeLogDirsTopic(name=replica.topic, partitions=[]))
        topic.partitions.append(_described(*replica))
    return list(topics.values())


def _described(partition: Partition, move: Move | None) -> DescribeLogDirsPartition:
    if move is not None:
        return DescribeLogDirsPartition(
            partition_index=partition.index,
            partition_size=move.state.bytes,
            offset_lag=move.lag,
            is_future_key=True,
        )
    return DescribeLogDirsPartition(
        partition_index=partition.index,
        partition_size=partition.size_bytes,
        # Kafka's definition for a current replica: high watermark minus log end offset, at least 0.
        offset_lag=max(partition.high_watermark - partition.log_end_offset, 0),
    )


def _volume(path: Path) -> _Volume:
    seen = os.statvfs(path)
    return _Volume(seen.f_blocks * seen.f_frsize, seen.f_bavail * seen.f_frsize)
