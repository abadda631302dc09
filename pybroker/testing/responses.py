"""Responses of a test broker in place of a handler's: error responses of every API, and limited version ranges.

Owns the position of errors in responses of Produce and Fetch; for all other APIs the handler defines it. As in
Kafka's `getErrorResponse`, each partition of the request gets the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import WireError
from pybroker.protocol.codec import encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import response_prefix
from pybroker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from pybroker.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from pybroker.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.registry import RegisteredApi
    from pybroker.protocol.schema import Message
    from pybroker.testing.requests import Request

OF_SESSIONS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors of a whole Fetch, not of one of its partitions."""
_FIRST_VERSION_WITH_TOP_LEVEL_ERROR = 7  # first Fetch version with an error for the whole response


def payload_of(request: Request, response: Message) -> bytes:
    """Return the bytes behind the correlation id of a response. Raises as `encode`."""
    return response_prefix(request.api_key, request.version) + encode(response, request.version)


def wants_no_response(request: Request) -> bool:
    """Return whether the client expects no response, so that only a closed connection shows it an error."""
    return request.api == "Produce" and request.message.acks == 0


def is_of_a_session(request: Request) -> bool:
    """Return whether a request is a Fetch that omits the partitions of its fetch session (KIP-227)."""
    return request.api == "Fetch" and request.message.session_id != 0 and request.message.session_epoch > 0


def error_response(
    api: RegisteredApi, request: Request, code: ErrorCode, message: str | None, concerns: Callable[[str, int], bool]
) -> Message:
    """Return the response with an error in every field for one.

    A Fetch response has it at the partitions that it `concerns` (a topic's name and an index), and no records at the
    others.
    """
    if request.api == "Produce":
        return _produce_error(request, code, message)
    if request.api == "Fetch":
        return _fetch_error(request, code, concerns)
    response: Message = api.respond_failure(request.message, request.version, WireError(code, message))
    return response


def _produce_error(request: Request, code: ErrorCode, message: str | None) -> ProduceResponse:
    # A request is rejected as a whole. To reject a part of it, the other part would have to be appended.
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=partition.index, error_code=code, base_offset=-1, error_message=message
                    )
                    for partition in topic.partition_data
                ],
            )
            for topic in request.message.topic_data
        ]
    )


def _fetch_error(request: Request, code: ErrorCode, concerns: Callable[[str, int], bool]) -> FetchResponse:
    if code in OF_SESSIONS and request.version >= _FIRST_VERSION_WITH_TOP_LEVEL_ERROR:
        return FetchResponse(error_code=code)
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(
                        partition_index=partition.partition,
                        error_code=code if concerns(request.name_of(topic) or "", partition.partition) else 0,
                        high_watermark=-1,
                        records=b"",
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.message.topics
        ]
    )


def narrowed_versions(
    api: RegisteredApi,
    request: Request,
    context: RequestContext,
    limits: Mapping[int, tuple[int, int] | None],
) -> bytes:
    """Return the ApiVersions response with these versions of the APIs in `limits` (by key), or without (None)."""
    own = limits.get(api.key)
    low, high = own or (api.min_version, api.max_version)
    if not low <= request.version <= high:
        refusal = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(api_key=api.key, min_version=low, max_version=high)],
        )
        return encode(refusal, 0)
    response: ApiVersionsResponse = api.handle(request.message, context)
    shown = []
    for one in response.api_keys:
        limit = limits.get(one.api_key, (one.min_version, one.max_version))
        if limit is not None:
            shown.append(ApiVersion(api_key=one.api_key, min_version=limit[0], max_version=limit[1]))
    response.api_keys = shown
    return encode(response, request.version)
