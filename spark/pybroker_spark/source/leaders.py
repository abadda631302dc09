"""Which partitions came to other leaders between two checks of the cluster, for the driver's log and for reports."""

from __future__ import annotations

from collections.abc import Iterable

from pybroker.client import TopicDescription

_NAMED = 8
"""Partitions that one line names."""


class LeaderWatch:
    """Compares the leader epochs of each call with those of the calls before."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[str, bytes, int], int] = {}
        self.changes = 0
        """How much the leader epochs of all partitions rose since each was seen first."""

    def compare(self, topics: Iterable[TopicDescription]) -> str | None:
        """Take what the cluster says now; returns which partitions came to other leaders since then, None for none."""
        met = []
        for topic in topics:
            for part in topic.partitions:
                key = (topic.name, topic.topic_id, part.index)
                before = self._epochs.setdefault(key, part.leader_epoch)
                if part.leader_epoch > before:
                    self._epochs[key] = part.leader_epoch
                    self.changes += part.leader_epoch - before
                    now = f"leader {part.leader}" if part.leader >= 0 else "no leader"
                    met.append(f"{topic.name}-{part.index} has {now} (epoch {before} to {part.leader_epoch})")
        more = f" and {len(met) - _NAMED} more" if len(met) > _NAMED else ""
        return ", ".join(met[:_NAMED]) + more if met else None
