"""Committed records as the quorum hands them on, from its log or from a snapshot.

Owns the shape alone. Must not know what records say.
"""

from __future__ import annotations

import msgspec

TOPIC_NAME = "__cluster_metadata"
"""Kafka's name of the topic that the metadata log counts as."""
DIRECTORY_NAME = "__cluster_metadata-0"
"""Kafka's name of the directory that holds the metadata log and its snapshots."""


class Batch(msgspec.Struct, frozen=True):
    """Committed records, in the order of the log; none for a batch that speaks to the quorum."""

    last_offset: int
    epoch: int
    values: tuple[bytes, ...]
