"""Produces of transactions that the data plane lets wait until the transaction's coordinator was asked (KIP-890).

Owns the way of such a request: the question up, the answers down. A coordinator on this broker is asked first, in the
wake-up that has brought the request and without a task; what it does not say yes to at once is asked for again in the
way of all others, which knows errors and when to try again. Must not know who is asked.
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
        log.exception("Failed to verify the transaction of %s", asked[0])
    finally:
        transaction_verified(data_plane, request.connection, request.request, answers)


def begin(
    data_plane: DataPlane,
    request: UnresolvedRequest,
    ask_here: Callable[[Asked], Reply | None],
    ask: Callable[[Asked], Awaitable[Answers]],
    spawn: Callable[[Any], None],
) -> None:
    """Let the request go on when its own broker's coordinator says that all partitions are part of the transaction.

    The reply of `ask_here` is whether they are. Where they are not, or it is not known, a task verifies by `ask`.
    """
    asked = request.transaction
    assert asked is not None

    def complete(are_part: bool, error: Exception | None) -> None:
        if error is None and are_part:
            transaction_verified(data_plane, request.connection, request.request, [None] * len(asked[-1]))
        else:
            spawn(verify(data_plane, request, asked, ask))

    reply = ask_here(asked)
    if reply is None:
        complete(False, None)
    else:
        reply.on_complete(complete)


def ask_none_here(_asked: Asked) -> None:
    """Say that no coordinator is on this broker."""


async def ask_nobody(asked: Asked) -> Answers:
    """Refuse a transaction where nobody is there to ask."""
    return [(ErrorCode.COORDINATOR_NOT_AVAILABLE, None) for _ in asked[-1]]
