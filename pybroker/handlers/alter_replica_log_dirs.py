"""AlterReplicaLogDirs: replicas go to another log directory of this broker (KIP-113).

Key
    34

Versions
    1-2

Behaviour
    - The answer comes when the move is begun, and is kept over a crash by the directory of the future replica,
      `<topic>-<partition>.<32 hex>-future`; DescribeLogDirs reports how far it is. The log is copied byte for byte
      while it is written and read, then the future replica takes its place at once, and the old directory is removed.
    - To the directory where the replica lies, or is on its way to, nothing moves; to any other one, a move that is
      under way is ended first, so that the present directory cancels it. Of a partition named twice, the later
      directory counts.
    - A path that is none of log.dirs: LOG_DIR_NOT_FOUND. One that failed, also that of the replica:
      KAFKA_STORAGE_ERROR.
    - A topic whose name is too long for a future replica's directory: INVALID_TOPIC_EXCEPTION.
    - A partition that does not lie here: REPLICA_NOT_AVAILABLE, or UNKNOWN_TOPIC_OR_PARTITION where there is none. It
      is put into that directory when it comes, unless the broker is started anew before.
    - Compaction leaves a log alone that moves; retention does not. A target that fails ends the move: what was copied
      is removed, and the log goes on where it is. A log that fails does so as ever; the next start goes on with the
      move.

Version notes
    - None.

Not done
    - A target without room ends the move and is not taken offline, as it is by Kafka: removing the copy makes room.
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

_Asked = dict[tuple[str, int], str]
"""The path where a partition is to go."""


def _asked(request: AlterReplicaLogDirsRequest) -> _Asked:
    return {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }


def _answer(codes: Mapping[tuple[str, int], ErrorCode]) -> AlterReplicaLogDirsResponse:
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (name, index), code in codes.items():
        topic = topics.setdefault(name, AlterReplicaLogDirTopicResult(topic_name=name, partitions=[]))
        topic.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def _failed(request: AlterReplicaLogDirsRequest, _version: int, error: WireError) -> AlterReplicaLogDirsResponse:
    return _answer(dict.fromkeys(_asked(request), error.code))


@handles(AlterReplicaLogDirsRequest, requires=[of_request(Operation.ALTER, ResourceType.CLUSTER)], failed=_failed)
async def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: BrokerContext
) -> AlterReplicaLogDirsResponse:
    """Begin each move by itself."""
    return await asyncio.get_running_loop().run_in_executor(None, _begin, request, context)


def _begin(request: AlterReplicaLogDirsRequest, context: BrokerContext) -> AlterReplicaLogDirsResponse:
    return _answer({key: _move(*key, path, context) for key, path in _asked(request).items()})


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
