"""The record ConsumerGroupRegularExpression (16) of `__consumer_offsets`: the topics that a pattern matches."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    about,
    int64,
    string,
    versions,
)


class ConsumerGroupRegularExpressionKey(Message, api_key=16, kind="coordinator-key", versions="0", flexible="none"):
    """The group and the pattern."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""
    regular_expression: Annotated[str, string, versions("0"), about("The pattern, as members wrote it.")] = ""


class ConsumerGroupRegularExpressionValue(Message, api_key=16, kind="coordinator-value", versions="0", flexible="0+"):
    """The matching topics, and the metadata version and time of the match."""

    topics: Annotated[list[str], string, versions("0+"), about("Topics that match.")] = []
    version: Annotated[int, int64, versions("0+"), about("Offset of the metadata that was looked at.")] = 0
    timestamp: Annotated[int, int64, versions("0+"), about("When that was, in milliseconds.")] = 0
