"""The record OffsetCommit (1) of `__consumer_offsets`: a group's committed offset of one partition."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    about,
    ignorable,
    int32,
    int64,
    string,
    tag,
    uuid,
    versions,
)


class OffsetCommitKey(Message, api_key=1, kind="coordinator-key", versions="0", flexible="none"):
    """The group and the partition."""

    group: Annotated[str, string, versions("0"), about("The group.")] = ""
    topic: Annotated[str, string, versions("0"), about("The topic's name.")] = ""
    partition: Annotated[int, int32, versions("0"), about("Number of the partition.")] = 0


class OffsetCommitValue(Message, api_key=1, kind="coordinator-value", versions="0-4", flexible="4+"):
    """The committed offset."""

    offset: Annotated[int, int64, versions("0+"), about("The next offset to read.")] = 0
    leader_epoch: Annotated[
        int, int32, versions("3+"), ignorable, about("Leader epoch of the record before it; -1 where unknown.")
    ] = -1
    metadata: Annotated[str, string, versions("0+"), about("What the client keeps with it.")] = ""
    commit_timestamp: Annotated[int, int64, versions("0+"), about("When it was committed, in milliseconds.")] = 0
    expire_timestamp: Annotated[
        int, int64, versions("1"), ignorable, about("When it may go, in milliseconds; -1: when the broker says.")
    ] = -1
    topic_id: Annotated[bytes, uuid, versions("4+"), tag(0, "4+"), ignorable, about("The topic's id.")] = ZERO_UUID
