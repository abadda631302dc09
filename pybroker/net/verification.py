"""Verification of transactional Produce requests, which wait in the data plane for its result (KIP-890).

Owns the steps of a verification. A coordinator on this broker is queried first, in the wake-up of the request and
without a task. If it does not confirm all partitions, the request is verified like all others, with error mapping and
retries. Must not know coordinators.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pybroker.net.native import transaction_verified
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.machine.reply import Reply
    from pybroker.net.native import DataPlane, UnresolvedRequest

log = logging.getLogger("pybroker.net")

Requested = tuple[str, int, int, int, list[tuple[str, int]]]
"""The query to the coordinator (`UnresolvedRequest.transaction`)."""
VerificationResults = list[tuple[int, str | None] | None]
"""For each partition the error code and message that reject the append, or None if it is part of the transaction."""


async def verify(
    data_plane: DataPlane,
    request: UnresolvedRequest,
    requested: Requested,
    query: Callable[[Requested], Awaitable[VerificationResults]],
) -> None:
    """Query the coordinator by `query`, and let the request continue with the results."""
    responses: VerificationResults = [(ErrorCode.UNKNOWN_SERVER_ERROR, None) for _ in requested[-1]]
    try:
        responses = await query(requested)
    except Exception:
        log.exception("Failed to verify the transaction of %s", requested[0])
    finally:
        transaction_verified(data_plane, request.connection, request.request, responses)


def begin(
    data_plane: DataPlane,
    request: UnresolvedRequest,
    query_here: Callable[[Requested], Reply | None],
    query: Callable[[Requested], Awaitable[VerificationResults]],
    spawn: Callable[[Any], None],
) -> None:
    """Let the request continue if this broker's coordinator confirms that all partitions are part of the transaction.

    `query_here` replies whether they are, or returns None if unknown. Otherwise a task verifies by `query`.
    """
    requested = request.transaction
    assert requested is not None

    def complete(are_part: bool, error: Exception | None) -> None:
        if error is None and are_part:
            transaction_verified(data_plane, request.connection, request.request, [None] * len(requested[-1]))
        else:
            spawn(verify(data_plane, request, requested, query))

    reply = query_here(requested)
    if reply is None:
        complete(False, None)
    else:
        reply.on_complete(complete)


def query_none_here(_requested: Requested) -> None:
    """Return None: this broker has no coordinator."""


async def query_none(requested: Requested) -> VerificationResults:
    """Reject all partitions: there is no coordinator."""
    return [(ErrorCode.COORDINATOR_NOT_AVAILABLE, None) for _ in requested[-1]]
