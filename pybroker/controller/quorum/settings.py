"""What one voter of the metadata quorum is configured with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

SEGMENT_BYTES = 1 << 30
"""Kafka's default of metadata.log.segment.bytes."""
SEGMENT_MS = 7 * 24 * 3600 * 1000
"""Kafka's default of metadata.log.segment.ms."""


class QuorumSettings(NamedTuple):
    """Who votes, and where this voter keeps its log."""

    directory: Path
    """Holds the directory of the metadata log, `__cluster_metadata-0`."""
    cluster_id: str
    node_id: int
    voters: tuple[int, ...]
    """Node ids of all voters, this one among them."""
    segment_bytes: int = SEGMENT_BYTES
    segment_ms: int = SEGMENT_MS
