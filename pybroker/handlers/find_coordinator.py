"""FindCoordinator: which broker coordinates a group or a transaction.

Key
    10

Versions
    0-6

Behaviour
    - Every key is COORDINATOR_NOT_AVAILABLE with node -1, which clients take as "ask again later".
    - A key type other than group, transaction and (version 6 and later) share is INVALID_REQUEST.

Version notes
    - One key in versions 0-3, many from version 4 on (KIP-699).

Not done
    - There are no group, transaction or share coordinators yet. The API is served because librdkafka offers lz4 only to
      brokers that list it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError, WireError
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2


def _failed(request: FindCoordinatorRequest, version: int, error: WireError) -> FindCoordinatorResponse:
    message = error.message or error.code.message
    if version < 4:
        return FindCoordinatorResponse(error_code=error.code, error_message=message, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=message)
            for key in request.coordinator_keys
        ],
    )


@handles(FindCoordinatorRequest, failed=_failed)
def find_coordinator(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    """Answer that no coordinator is available."""
    if request.key_type not in (_GROUP, _TRANSACTION, _SHARE) or (request.key_type == _SHARE and context.version < 6):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type {request.key_type}")
    return _failed(request, context.version, WireError(ErrorCode.COORDINATOR_NOT_AVAILABLE, None))
