"""The gateway to Rust: the only module of this package that imports the extension."""

from __future__ import annotations

from pybroker._native import Delivery, Fetcher, KeyedStamps, LatencyHistogram, Producer, Record, Tally

__all__ = ["Delivery", "Fetcher", "KeyedStamps", "LatencyHistogram", "Producer", "Record", "Tally"]
