"""Produces of transactions that the data plane lets wait until the transaction's coordinator was asked (KIP-890).

Owns the way of such a request: the question up, the answers down. Must not know who is asked.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.net.native import transaction_verified
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.net.native import DataPlane, UnresolvedRequest

log = logging.getLogger("pybroker.net")

Asked = tuple[str, int, int, int, list[tuple[str, int]]]
"""What the coordinator is asked (`UnresolvedRequest.transaction`)."""
Answers = list[tuple[int, str | None] | None]
"""Of each partition why nothing may be appended to it, as code and words; None where it is part of the transaction."""


async def verify(
    data_plane: DataPlane, request: UnresolvedRequest, asked: Asked, ask: Callable[[Asked], Awaitable[Answers]]
) -> None:
    """Ask, and let the request go on with the answers."""
    answers: Answers = [(ErrorCode.UNKNOWN_SERVER_ERROR, None) for _ in asked[-1]]
    try:
        answers = await ask(asked)
    except Exception:
        log.exception("the transaction of %s could not be verified", asked[0])
    finally:
        transaction_verified(data_plane, request.connection, request.request, answers)


async def ask_nobody(asked: Asked) -> Answers:
    """Refuse a transaction where nobody is there to ask."""
    return [(ErrorCode.COORDINATOR_NOT_AVAILABLE, None) for _ in asked[-1]]
