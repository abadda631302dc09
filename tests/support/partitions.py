"""Partitions opened one by one, as a test of their owners needs them."""

from __future__ import annotations

from pybroker.storage.native import LogConfig, Partition
from pybroker.storage.partitions import Opening, Partitions


def open_one(
    partitions: Partitions, topic: str, index: int, topic_id: bytes, config: LogConfig, assigned: bytes | None = None
) -> Partition:
    """Open a partition; raises what keeps it from being served."""
    (opened,) = partitions.open_all([Opening((topic, index), topic_id, config, assigned)]).values()
    if isinstance(opened, Exception):
        raise opened
    return opened
