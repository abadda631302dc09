"""The gateway of `replica` to Rust: the topic table and what it is made of."""

from __future__ import annotations

from pybroker._native import DataPlane, PartitionEntry, TopicEntry, TopicTable

__all__ = ["DataPlane", "PartitionEntry", "TopicEntry", "TopicTable"]
