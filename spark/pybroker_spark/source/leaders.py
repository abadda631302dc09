"""Leader changes of partitions between two metadata responses, for the driver's log and for reports."""

from __future__ import annotations

from collections.abc import Iterable

from pybroker.client import TopicDescription

_NAMED = 8
"""Maximum number of partitions in one line."""


class LeaderWatch:
    """Compares the leader epochs of each call with those of earlier calls."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[str, bytes, int], int] = {}
        self.changes = 0
        """Sum of the increases of all partitions' leader epochs since the first call with the partition."""

    def compare(self, topics: Iterable[TopicDescription]) -> str | None:
        """Add current metadata.

        Returns a text with the partitions whose leader has changed since the last call, or None.
        """
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
