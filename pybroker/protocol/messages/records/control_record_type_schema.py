"""The control record ControlRecordTypeSchema."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int16, versions


class ControlRecordTypeSchema(Message, kind="data", versions="0", flexible="none"):
    """The key of every control record, after an `int16` version."""

    type: Annotated[
        int,
        int16,
        versions("0+"),
        about("0 abort, 1 commit, 2 leader change, 3 and 4 snapshot header and footer, 5 kraft version, 6 voters."),
    ] = 0
