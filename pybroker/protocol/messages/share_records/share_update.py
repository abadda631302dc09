"""The record ShareUpdate (1) of `__share_group_state`: a change of the state of a share-partition."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    int8,
    int16,
    int32,
    int64,
    string,
    tag,
    uuid,
    versions,
)


class ShareUpdateKey(Message, api_key=1, kind="coordinator-key", versions="0", flexible="none"):
    """The group and the partition."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""
    topic_id: Annotated[bytes, uuid, versions("0"), about("The topic.")] = ZERO_UUID
    partition: Annotated[int, int32, versions("0"), about("The partition.")] = 0


class StateBatch(Struct):
    """A range of offsets in one state."""

    first_offset: Annotated[int, int64, versions("0+"), about("The first offset.")] = 0
    last_offset: Annotated[int, int64, versions("0+"), about("The last offset.")] = 0
    delivery_state: Annotated[int, int8, versions("0+"), about("0 available, 2 acknowledged, 4 archived.")] = 0
    delivery_count: Annotated[int, int16, versions("0+"), about("How often they were delivered.")] = 0


class ShareUpdateValue(Message, api_key=1, kind="coordinator-value", versions="0", flexible="0+"):
    """A change of the state of a share-partition."""

    snapshot_epoch: Annotated[int, int32, versions("0+"), about("Grows with every snapshot.")] = 0
    leader_epoch: Annotated[int, int32, versions("0+"), about("The partition leader's epoch.")] = 0
    start_offset: Annotated[
        int,
        int64,
        versions("0+"),
        about("First offset that is still to be delivered; in an update -1 where it has not changed."),
    ] = 0
    delivery_complete_count: Annotated[
        int, int32, versions("0+"), tag(0, "0+"), about("How many offsets from the start on are done with.")
    ] = -1
    state_batches: Annotated[list[StateBatch], versions("0+"), about("Runs of offsets in one state.")] = []
