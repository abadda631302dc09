"""The control record KRaftVersionRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int16, versions


class KRaftVersionRecord(Message, kind="data", versions="0", flexible="0+"):
    """The quorum has a new `kraft.version`."""

    version: Annotated[int, int16, versions("0+"), about("Version of this record.")] = 0
    kraft_version: Annotated[
        int, int16, versions("0+"), about("Level of the quorum's protocol: 0 fixed voters, 1 voters by record.")
    ] = 0
