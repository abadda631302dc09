"""The control record SnapshotFooterRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int16, versions


class SnapshotFooterRecord(Message, kind="data", versions="0", flexible="0+"):
    """The last record of a snapshot."""

    version: Annotated[int, int16, versions("0+"), about("Version of this record.")] = 0
