"""Committed records, read from the quorum's log or from a snapshot.

Owns only this type. Must not know the content of records.
"""

from __future__ import annotations

import msgspec

TOPIC_NAME = "__cluster_metadata"
"""Kafka's topic name of the metadata log."""
DIRECTORY_NAME = "__cluster_metadata-0"
"""Kafka's name of the directory of the metadata log and its snapshots."""


class Batch(msgspec.Struct, frozen=True):
    """Committed records, in log order; empty for a control batch."""

    last_offset: int
    epoch: int
    values: tuple[bytes, ...]
