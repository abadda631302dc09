"""The gateway of `replica` to Rust: roles, and the topic table with its parts."""

from __future__ import annotations

from pybroker._native import (
    DataPlane,
    Partition,
    PartitionEntry,
    ReplicaCaughtUp,
    ReplicaDeletedRecords,
    ReplicationSettings,
    Role,
    TopicEntry,
    TopicTable,
    become_roles,
    lagging_replicas,
    stop_joining,
)

__all__ = [
    "DataPlane",
    "Partition",
    "PartitionEntry",
    "ReplicaCaughtUp",
    "ReplicaDeletedRecords",
    "ReplicationSettings",
    "Role",
    "TopicEntry",
    "TopicTable",
    "become_roles",
    "lagging_replicas",
    "stop_joining",
]
