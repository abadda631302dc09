"""ConsumerGroupTargetAssignmentMetadata (6) of `__consumer_offsets`: the epoch of the target assignment."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    about,
    ignorable,
    int32,
    int64,
    string,
    tag,
    versions,
)


class ConsumerGroupTargetAssignmentMetadataKey(
    Message, api_key=6, kind="coordinator-key", versions="0", flexible="none"
):
    """The group."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""


class ConsumerGroupTargetAssignmentMetadataValue(
    Message, api_key=6, kind="coordinator-value", versions="0", flexible="0+"
):
    """The epoch of the target assignment."""

    assignment_epoch: Annotated[int, int32, versions("0+"), about("The group epoch that it was made for.")] = 0
    assignment_timestamp: Annotated[
        int,
        int64,
        versions("0+"),
        tag(0, "0+"),
        ignorable,
        about("When it was made, in milliseconds; 0 where unknown."),
    ] = 0
