"""The first record of a snapshot: Kafka's fields, and further fields for this broker's voters.

Owns the types of control records in a snapshot, and our tagged fields: Kafka's readers skip unknown tags, and a
snapshot that Kafka has written lacks them.
"""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int16, int64, tag, versions

SNAPSHOT_HEADER = 3
SNAPSHOT_FOOTER = 4
KRAFT_VERSION = 5
KRAFT_VOTERS = 6

UNKNOWN = -1


class SnapshotHeader(Message, kind="data", versions="0", flexible="0+"):
    """Kafka's SnapshotHeaderRecord with additional tagged fields."""

    version: Annotated[int, int16, versions("0+"), about("Version of this record.")] = 0
    last_contained_log_timestamp: Annotated[
        int, int64, versions("0+"), about("Append time of the last record that the snapshot covers.")
    ] = 0
    raft_index: Annotated[
        int, int64, versions("0+"), tag(10001, "0+"), about("Raft index of the last entry that the snapshot covers.")
    ] = UNKNOWN
    features_epoch: Annotated[
        int, int64, versions("0+"), tag(10002, "0+"), about("Offset at which a level of a feature changed last.")
    ] = UNKNOWN
