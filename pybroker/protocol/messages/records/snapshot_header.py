"""The control record SnapshotHeaderRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, int16, int64, versions


class SnapshotHeaderRecord(Message, kind="data", versions="0", flexible="0+"):
    """SnapshotHeaderRecord."""

    version: Annotated[int, int16, versions("0+")] = 0
    last_contained_log_timestamp: Annotated[int, int64, versions("0+")] = 0
