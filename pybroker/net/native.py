"""The gateway of `net` to Rust: the data plane and its events."""

from __future__ import annotations

from pybroker._native import (
    AppendCompleted,
    ClientUses,
    ConnectionClosed,
    ControlRequest,
    DataPlane,
    DataPlaneSettings,
    Exhausted,
    InterceptedRequest,
    LogDirectoryFailed,
    LogLine,
    PartitionStates,
    PeerCertificate,
    QuotaQuery,
    ReplicaCaughtUp,
    ReplicaDeletedRecords,
    SegmentRolled,
    UnresolvedRequest,
    WorkCounters,
    append_markers,
    client_uses,
    confirm_transaction,
    count_request_time,
    mute,
    network_threads,
    partition_states,
    set_client_quotas,
    set_network_threads,
    set_quotas,
    set_thread_slice,
    transaction_verified,
    unlisten,
    verify_transactions,
    work_counters,
)

ReplicaEvent = ReplicaCaughtUp | ReplicaDeletedRecords
"""Events of a leader about a follower."""

Event = (
    AppendCompleted
    | ControlRequest
    | InterceptedRequest
    | UnresolvedRequest
    | ConnectionClosed
    | Exhausted
    | LogDirectoryFailed
    | LogLine
    | PeerCertificate
    | QuotaQuery
    | ReplicaEvent
    | SegmentRolled
)
"""The events that `DataPlane.drain` returns."""

__all__ = [
    "AppendCompleted",
    "ClientUses",
    "ConnectionClosed",
    "ControlRequest",
    "DataPlane",
    "DataPlaneSettings",
    "Event",
    "Exhausted",
    "InterceptedRequest",
    "LogDirectoryFailed",
    "LogLine",
    "PartitionStates",
    "PeerCertificate",
    "QuotaQuery",
    "ReplicaCaughtUp",
    "ReplicaDeletedRecords",
    "ReplicaEvent",
    "SegmentRolled",
    "UnresolvedRequest",
    "WorkCounters",
    "append_markers",
    "client_uses",
    "confirm_transaction",
    "count_request_time",
    "mute",
    "network_threads",
    "partition_states",
    "set_client_quotas",
    "set_network_threads",
    "set_quotas",
    "set_thread_slice",
    "transaction_verified",
    "unlisten",
    "verify_transactions",
    "work_counters",
]
