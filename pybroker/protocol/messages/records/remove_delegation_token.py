"""The metadata record RemoveDelegationTokenRecord (26)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, string, versions


class RemoveDelegationTokenRecord(Message, api_key=26, kind="metadata", versions="0", flexible="0+"):
    """A delegation token is removed."""

    token_id: Annotated[str, string, versions("0+"), about("Its id.")] = ""
