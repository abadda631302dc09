"""The gateway of `storage` to Rust: the types of a log and its settings."""

from __future__ import annotations

from pybroker._native import (
    CleanedLog,
    LogCleaner,
    LogConfig,
    LogMove,
    LogMover,
    LogOpening,
    Partition,
    PartitionLog,
    RecoveryProgress,
    RemovedSegments,
    advance_log_start,
    become_leaders,
    delete_old_segments,
    earliest_dirty_timestamp,
    move_count,
    open_logs,
    prepare_move,
    read_topic_ids,
    roll_when_older,
    survey_segments,
)

__all__ = [
    "CleanedLog",
    "LogCleaner",
    "LogConfig",
    "LogMove",
    "LogMover",
    "LogOpening",
    "Partition",
    "PartitionLog",
    "RecoveryProgress",
    "RemovedSegments",
    "advance_log_start",
    "become_leaders",
    "delete_old_segments",
    "earliest_dirty_timestamp",
    "move_count",
    "open_logs",
    "prepare_move",
    "read_topic_ids",
    "roll_when_older",
    "survey_segments",
]
