"""The gateway of this package to the extension: the Raft voter, the log, the metadata batches."""

from __future__ import annotations

from pybroker._native import (
    Log,
    Quorum,
    QuorumReady,
    build_control_batch,
    build_record_batch,
    changes_voters,
    parse_control_batch,
    parse_metadata_batches,
    verify_log,
)

__all__ = [
    "Log",
    "Quorum",
    "QuorumReady",
    "build_control_batch",
    "build_record_batch",
    "changes_voters",
    "parse_control_batch",
    "parse_metadata_batches",
    "verify_log",
]
