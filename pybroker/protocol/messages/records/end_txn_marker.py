"""The control record EndTxnMarker."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int32, versions


class EndTxnMarker(Message, kind="data", versions="0", flexible="none"):
    """The value of the control record that ends a transaction in one partition."""

    coordinator_epoch: Annotated[
        int, int32, versions("0+"), about("Epoch of the transaction coordinator that ends it.")
    ] = 0
