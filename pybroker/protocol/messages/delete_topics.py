"""DeleteTopics (20): deletes topics by name, from version 6 also by id."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    ignorable,
    int16,
    int32,
    map_key,
    nullable,
    string,
    uuid,
    versions,
)

FIRST_VERSION_WITH_TOPIC_IDS = 6


class DeleteTopicState(Struct):
    """A topic to delete, by name or by id."""

    name: Annotated[str | None, string, versions("6+"), nullable("6+"), about("Deleted by name, unless null.")] = None
    topic_id: Annotated[bytes, uuid, versions("6+"), about("Deleted by id, unless zero.")] = ZERO_UUID


class DeleteTopicsRequest(Message, api_key=20, kind="request", versions="1-6", flexible="4+"):
    """Requests the controller to delete topics."""

    topics: Annotated[list[DeleteTopicState], versions("6+"), about("The topics to delete.")] = []
    topic_names: Annotated[list[str], string, versions("0-5"), ignorable, about("The topics to delete.")] = []
    timeout_ms: Annotated[int, int32, versions("0+"), about("How long the broker may take, in milliseconds.")] = 0


class DeletableTopicResult(Struct):
    """The result for one topic."""

    name: Annotated[
        str | None, string, versions("0+"), nullable("6+"), map_key, about("Null where an unknown id was asked for.")
    ] = ""
    topic_id: Annotated[bytes, uuid, versions("6+"), ignorable, about("The topic's id.")] = ZERO_UUID
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("5+"), nullable("5+"), ignorable, about("What went wrong, for people.")
    ] = None


class DeleteTopicsResponse(Message, api_key=20, kind="response", versions="1-6", flexible="4+"):
    """The result for each topic."""

    throttle_time_ms: Annotated[
        int, int32, versions("1+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    responses: Annotated[list[DeletableTopicResult], versions("0+"), about("One result for each topic asked for.")] = []
