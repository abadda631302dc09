"""The gateway of `replica` to Rust: roles, the topic table and what it is made of."""

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
