"""The record ConsumerGroupMetadata (3) of `__consumer_offsets`: the epoch of a consumer group (KIP-848)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    about,
    int32,
    int64,
    string,
    tag,
    versions,
)


class ConsumerGroupMetadataKey(Message, api_key=3, kind="coordinator-key", versions="0", flexible="none"):
    """The group."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""


class ConsumerGroupMetadataValue(Message, api_key=3, kind="coordinator-value", versions="0", flexible="0+"):
    """The group's epoch and the hash of its topics' metadata."""

    epoch: Annotated[int, int32, versions("0+"), about("Grows when members or subscriptions change.")] = 0
    metadata_hash: Annotated[
        int, int64, versions("0+"), tag(0, "0+"), about("Hash of the topics it is subscribed to (KIP-1101).")
    ] = 0
