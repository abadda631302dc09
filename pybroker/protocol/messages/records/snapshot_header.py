"""The control record SnapshotHeaderRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int16, int64, versions


class SnapshotHeaderRecord(Message, kind="data", versions="0", flexible="0+"):
    """The first record of a snapshot."""

    version: Annotated[int, int16, versions("0+"), about("Version of this record.")] = 0
    last_contained_log_timestamp: Annotated[
        int, int64, versions("0+"), about("Append time of the last record that the snapshot covers.")
    ] = 0
