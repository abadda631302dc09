"""The metadata record FenceBrokerRecord (7)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int32, int64, versions


class FenceBrokerRecord(Message, api_key=7, kind="metadata", versions="0", flexible="0+"):
    """A broker is fenced (before metadata version 3.3)."""

    id: Annotated[int, int32, versions("0+"), about("The broker.")] = 0
    epoch: Annotated[int, int64, versions("0+"), about("The broker's epoch.")] = 0
