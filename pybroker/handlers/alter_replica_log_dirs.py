"""AlterReplicaLogDirs: moves replicas to another log directory of this broker (KIP-113).

Key
    34

Versions
    1-2

Behaviour
    - The response is sent when the move has started. The future replica has a directory of its own, which persists the
      move over a crash: `<topic>-<partition>.<32 hex>-future`. DescribeLogDirs reports its progress. The log is copied
      byte for byte while it is in use. Then the future replica replaces it, and the old directory is removed.
    - A request for the replica's current directory cancels a move in progress. A request for the target of that move
      changes nothing. A request for another directory cancels it and starts a new move. If a partition occurs twice,
      the last directory counts.
    - LOG_DIR_NOT_FOUND for a path that is not in log.dirs. KAFKA_STORAGE_ERROR if it, or the replica's directory, has
      failed.
    - INVALID_TOPIC_EXCEPTION for a topic name that is too long for a future replica's directory.
    - REPLICA_NOT_AVAILABLE for a partition without a replica here, UNKNOWN_TOPIC_OR_PARTITION for one that does not
      exist. A replica that is created later is placed in that directory, unless the broker is restarted before.
    - A log that is moved is not compacted, but retention applies. If the target fails, the move is cancelled, the copy
      is removed, and the log stays in its directory. If the source fails, the next start resumes the move.

Version notes
    - None.

Not done
    - A full target cancels the move, and is not taken offline as in Kafka: removing the copy frees space.
    - Throttling of the request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pybroker.handlers.errors import wire_error
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request
from pybroker.storage.errors import PartitionNotHereError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError

_Requested = dict[tuple[str, int], str]
"""The target path of each partition."""


def _requested(request: AlterReplicaLogDirsRequest) -> _Requested:
    return {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }


def _respond(codes: Mapping[tuple[str, int], ErrorCode]) -> AlterReplicaLogDirsResponse:
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (name, index), code in codes.items():
        topic = topics.setdefault(name, AlterReplicaLogDirTopicResult(topic_name=name, partitions=[]))
        topic.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def _failed(request: AlterReplicaLogDirsRequest, _version: int, error: WireError) -> AlterReplicaLogDirsResponse:
    return _respond(dict.fromkeys(_requested(request), error.code))


@handles(AlterReplicaLogDirsRequest, requires=[of_request(Operation.ALTER, ResourceType.CLUSTER)], failed=_failed)
async def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: BrokerContext
) -> AlterReplicaLogDirsResponse:
    """Start each move independently."""
    return await asyncio.get_running_loop().run_in_executor(None, _begin, request, context)


def _begin(request: AlterReplicaLogDirsRequest, context: BrokerContext) -> AlterReplicaLogDirsResponse:
    return _respond({key: _move(*key, path, context) for key, path in _requested(request).items()})


def _move(topic: str, index: int, path: str, context: BrokerContext) -> ErrorCode:
    try:
        context.services.moves.request(topic, index, path)
    except PartitionNotHereError:
        image = context.image.topics.by_name.get(topic)
        known = image is not None and index in image.partitions
        return ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    except (OSError, StorageError) as error:
        return wire_error(error).code
    return ErrorCode.NONE
