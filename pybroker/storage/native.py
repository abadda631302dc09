"""The gateway of `storage` to Rust: the types of a log and its settings."""

from __future__ import annotations

from pybroker._native import (
    CleanedLog,
    LogCleaner,
    LogConfig,
    LogMove,
    LogMover,
    Partition,
    PartitionLog,
    RecoveryProgress,
    RemovedSegments,
    advance_log_start,
    delete_old_segments,
    earliest_dirty_timestamp,
    move_count,
    prepare_move,
    read_topic_id,
    roll_when_older,
    survey_segments,
)

__all__ = [
    "CleanedLog",
    "LogCleaner",
    "LogConfig",
    "LogMove",
    "LogMover",
    "Partition",
    "PartitionLog",
    "RecoveryProgress",
    "RemovedSegments",
    "advance_log_start",
    "delete_old_segments",
    "earliest_dirty_timestamp",
    "move_count",
    "prepare_move",
    "read_topic_id",
    "roll_when_older",
    "survey_segments",
]
