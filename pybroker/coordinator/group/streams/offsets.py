"""The changelog offsets that a member reports for its tasks.

Owns their form. They are in memory only: after the coordinator moves, members report them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pybroker.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskOffset


class TaskOffsets(msgspec.Struct, frozen=True):
    """Offsets by subtopology and partition."""

    current: Mapping[str, Mapping[int, int]] = {}
    """Sum of the offsets of the task's changelog partitions."""
    end: Mapping[str, Mapping[int, int]] = {}
    """Sum of their end offsets."""


NO_OFFSETS = TaskOffsets()


def reported_offsets(before: TaskOffsets, request: StreamsGroupHeartbeatRequest) -> TaskOffsets:
    """Return the offsets after a heartbeat; the same object if it contains none."""
    if request.task_offsets is None and request.task_end_offsets is None:
        return before
    return TaskOffsets(
        before.current if request.task_offsets is None else _by_task(request.task_offsets),
        before.end if request.task_end_offsets is None else _by_task(request.task_end_offsets),
    )


def _by_task(offsets: Iterable[TaskOffset]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for task in offsets:
        of_part = found.setdefault(task.subtopology_id, {})
        if task.partition in of_part:
            raise InvalidRequestError(
                f"Task offsets contain a duplicate entry for subtopology {task.subtopology_id} and partition "
                f"{task.partition}."
            )
        of_part[task.partition] = task.offset
    return found
