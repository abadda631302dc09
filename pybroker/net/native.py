"""The gateway of `net` to Rust: the data plane and the events it sends up."""

from __future__ import annotations

from pybroker._native import (
    AppendSettled,
    ConnectionClosed,
    ControlRequest,
    DataPlane,
    DataPlaneSettings,
    Exhausted,
    InterceptedRequest,
    LogDirectoryFailed,
    LogLine,
    ReplicaCaughtUp,
    ReplicaDeletedRecords,
    SegmentRolled,
    UnresolvedRequest,
)

Event = (
    AppendSettled
    | ControlRequest
    | InterceptedRequest
    | UnresolvedRequest
    | ConnectionClosed
    | Exhausted
    | LogDirectoryFailed
    | LogLine
    | ReplicaCaughtUp
    | ReplicaDeletedRecords
    | SegmentRolled
)
"""What `DataPlane.drain` returns."""

__all__ = [
    "AppendSettled",
    "ConnectionClosed",
    "ControlRequest",
    "DataPlane",
    "DataPlaneSettings",
    "Event",
    "Exhausted",
    "InterceptedRequest",
    "LogDirectoryFailed",
    "LogLine",
    "ReplicaCaughtUp",
    "ReplicaDeletedRecords",
    "SegmentRolled",
    "UnresolvedRequest",
]
