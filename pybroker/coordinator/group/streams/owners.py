"""The processes that have each task of a group, derived from its members.

Owns the lookup that `reconciliation` uses. A static member that is away keeps its tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pybroker.coordinator.group.streams.member import StreamsMember


class TaskOwners:
    """The owners at one moment; never modified."""

    def __init__(self, members: Iterable[StreamsMember]) -> None:
        self._active: dict[tuple[str, int], str] = {}
        self._standby: dict[tuple[str, int], set[str]] = {}
        self._warmup: dict[tuple[str, int], set[str]] = {}
        for member in members:
            for held in (member.assigned, member.revoking):
                for part, indexes in held.active.items():
                    self._active.update(((part, index), member.process_id) for index in indexes)
                _add(self._standby, held.standby, member.process_id)
                _add(self._warmup, held.warmup, member.process_id)

    def active(self, part: str, index: int) -> str | None:
        """Return the process with the active task, None without one."""
        return self._active.get((part, index))

    def standby(self, part: str, index: int) -> Collection[str]:
        """Return the processes with the standby task."""
        return self._standby.get((part, index), ())

    def warmup(self, part: str, index: int) -> Collection[str]:
        """Return the processes with the warm-up task."""
        return self._warmup.get((part, index), ())


def _add(owners: dict[tuple[str, int], set[str]], tasks: Mapping[str, frozenset[int]], process_id: str) -> None:
    for part, indexes in tasks.items():
        for index in indexes:
            owners.setdefault((part, index), set()).add(process_id)
