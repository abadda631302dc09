"""The input of an assignor of streams groups.

Owns only these types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.coordinator.group.streams.tasks import TaskSet


class StreamsMemberSpec(msgspec.Struct, frozen=True):
    """A member and its current tasks."""

    process_id: str
    active: TaskSet = {}
    standby: TaskSet = {}
    offsets: Mapping[str, Mapping[int, int]] = {}
    """Changelog offsets of tasks whose state the member has, by subtopology and partition."""


class SubtopologySpec(msgspec.Struct, frozen=True):
    """The tasks of a subtopology."""

    tasks: int
    has_state: bool


class StreamsGroupSpec(msgspec.Struct, frozen=True):
    """Members by id, and subtopologies by id in order."""

    members: Mapping[str, StreamsMemberSpec]
    subtopologies: Mapping[str, SubtopologySpec]
    standby_replicas: int = 0
    """Number of standby tasks for each task with state."""
