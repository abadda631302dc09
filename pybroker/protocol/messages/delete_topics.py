"""The messages of DeleteTopics."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    ignorable,
    int16,
    int32,
    map_key,
    nullable,
    string,
    uuid,
    versions,
)


class DeleteTopicState(Struct):
    """DeleteTopicState."""

    name: Annotated[str | None, string, versions("6+"), nullable("6+")] = None
    topic_id: Annotated[bytes, uuid, versions("6+")] = ZERO_UUID


class DeleteTopicsRequest(Message, api_key=20, kind="request", versions="1-6", flexible="4+"):
    """DeleteTopicsRequest."""

    topics: Annotated[list[DeleteTopicState], versions("6+")] = []
    topic_names: Annotated[list[str], string, versions("0-5"), ignorable] = []
    timeout_ms: Annotated[int, int32, versions("0+")] = 0


class DeletableTopicResult(Struct):
    """DeletableTopicResult."""

    name: Annotated[str | None, string, versions("0+"), nullable("6+"), map_key] = ""
    topic_id: Annotated[bytes, uuid, versions("6+"), ignorable] = ZERO_UUID
    error_code: Annotated[int, int16, versions("0+")] = 0
    error_message: Annotated[str | None, string, versions("5+"), nullable("5+"), ignorable] = None


class DeleteTopicsResponse(Message, api_key=20, kind="response", versions="1-6", flexible="4+"):
    """DeleteTopicsResponse."""

    throttle_time_ms: Annotated[int, int32, versions("1+"), ignorable] = 0
    responses: Annotated[list[DeletableTopicResult], versions("0+")] = []
