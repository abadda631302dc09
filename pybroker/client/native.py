"""The gateway to Rust: the only module of this package that imports the extension."""

from __future__ import annotations

from pybroker._native import (
    ColumnReader,
    Delivery,
    Fetcher,
    KeyedStamps,
    LatencyHistogram,
    Outgoing,
    Producer,
    Received,
    Record,
    RecordColumns,
    Settlements,
    Tally,
)

__all__ = [
    "ColumnReader",
    "Delivery",
    "Fetcher",
    "KeyedStamps",
    "LatencyHistogram",
    "Outgoing",
    "Producer",
    "Received",
    "Record",
    "RecordColumns",
    "Settlements",
    "Tally",
]
