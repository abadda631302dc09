"""Answers that a test broker gives in place of a handler: errors of every API, and narrowed ranges of versions.

Owns where the answer of Produce and of Fetch has room for an error; for all other APIs their handler knows. As Kafka's
`getErrorResponse` does it, the error is at each partition that the request names.
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
_FIRST_VERSION_WITH_TOP_LEVEL_ERROR = 7  # first Fetch version with an error for the whole answer


def payload_of(request: Request, response: Message) -> bytes:
    """Return what follows the correlation id of an answer; raises what `encode` raises."""
    return response_prefix(request.api_key, request.version) + encode(response, request.version)


def wants_no_answer(request: Request) -> bool:
    """Return whether the client waits for no answer, so that only a closed connection shows it an error."""
    return request.api == "Produce" and request.message.acks == 0


def is_of_a_session(request: Request) -> bool:
    """Return whether a request is a Fetch that leaves out the partitions which its session knows (KIP-227)."""
    return request.api == "Fetch" and request.message.session_id != 0 and request.message.session_epoch > 0


def error_answer(
    api: RegisteredApi, request: Request, code: ErrorCode, message: str | None, concerns: Callable[[str, int], bool]
) -> Message:
    """Return the answer with an error in every place that has room for one.

    A Fetch has it at the partitions that it `concerns` (a topic's name and an index) and nothing new at the others.
    """
    if request.api == "Produce":
        return _produce_error(request, code, message)
    if request.api == "Fetch":
        return _fetch_error(request, code, concerns)
    answer: Message = api.answer_failure(request.message, request.version, WireError(code, message))
    return answer


def _produce_error(request: Request, code: ErrorCode, message: str | None) -> ProduceResponse:
    # A request is refused as a whole: what was refused in part would have to be appended in part.
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
    """Return the answer to ApiVersions that shows the APIs in `limits` (by key) with these versions, or not (None)."""
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
