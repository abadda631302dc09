"""The gateway of `replica` to Rust: roles, the topic table and what it is made of."""

from __future__ import annotations

from pybroker._native import DataPlane, PartitionEntry, Role, TopicEntry, TopicTable, become_roles

__all__ = ["DataPlane", "PartitionEntry", "Role", "TopicEntry", "TopicTable", "become_roles"]
