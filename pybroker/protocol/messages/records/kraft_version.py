"""The control record KRaftVersionRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, int16, versions


class KRaftVersionRecord(Message, kind="data", versions="0", flexible="0+"):
    """KRaftVersionRecord."""

    version: Annotated[int, int16, versions("0+")] = 0
    k_raft_version: Annotated[int, int16, versions("0+")] = 0
