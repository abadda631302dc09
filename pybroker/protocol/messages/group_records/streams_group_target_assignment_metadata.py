"""StreamsGroupTargetAssignmentMetadata (20) of `__consumer_offsets`: the epoch of a target assignment."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, ignorable, int32, int64, string, tag, versions


class StreamsGroupTargetAssignmentMetadataKey(
    Message, api_key=20, kind="coordinator-key", versions="0", flexible="none"
):
    """The group."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""


class StreamsGroupTargetAssignmentMetadataValue(
    Message, api_key=20, kind="coordinator-value", versions="0", flexible="0+"
):
    """The target's epoch, and when it was computed."""

    assignment_epoch: Annotated[int, int32, versions("0+"), about("The group epoch of the target assignment.")] = 0
    assignment_timestamp: Annotated[
        int, int64, versions("0+"), tag(0, "0+"), ignorable, about("When the assignment was computed.")
    ] = 0
