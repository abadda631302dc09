"""The metadata record DelegationTokenRecord (10)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int64, string, versions


class DelegationTokenRecord(Message, api_key=10, kind="metadata", versions="0", flexible="0+"):
    """A delegation token exists (KIP-900)."""

    owner: Annotated[str, string, versions("0+"), about("Who it speaks for.")] = ""
    requester: Annotated[str, string, versions("0+"), about("Who asked for it.")] = ""
    renewers: Annotated[list[str], string, versions("0+"), about("Principals that may renew it.")] = []
    issue_timestamp: Annotated[int, int64, versions("0+"), about("When it was made, in milliseconds.")] = 0
    max_timestamp: Annotated[int, int64, versions("0+"), about("When it ends for good, in milliseconds.")] = 0
    expiration_timestamp: Annotated[
        int, int64, versions("0+"), about("When it ends unless it is renewed, in milliseconds.")
    ] = 0
    token_id: Annotated[str, string, versions("0+"), about("Its id.")] = ""
