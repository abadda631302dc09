"""Requests that make or delete partitions, within the quota of their client (KIP-599).

Owns what becomes of a request's items beyond the quota: THROTTLING_QUOTA_EXCEEDED for clients that know it. Must not
know what the items are.

What is refused for another reason has that reason also beyond the quota, and is not counted, as in Kafka: what is
decided about is counted first, and given back where nothing came of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pybroker.handlers.context import RequestContext

Item = TypeVar("Item")

EXCEEDED = "The throttling quota has been exceeded."


async def within_quota(
    context: RequestContext,
    items: Sequence[Item],
    *,
    weigh: Callable[[Item], int],
    strict_since: int,
    do: Callable[[Sequence[Item]], Awaitable[list[Any]]],
    judge: Callable[[Sequence[Item]], Awaitable[list[Any]]],
) -> tuple[list[Any], int]:
    """Return what `do` makes of items, one result for each in their order, and how many ms the client is to wait.

    Of items beyond the quota it is what `judge` says.

    `weigh` returns the partitions of an item, 0 for one that nothing will come of. `judge` decides as `do` does and
    changes nothing. `strict_since` is the first version whose clients know the error. Results have `error_code`.
    """
    mutations = context.services.mutations
    user, client_id = context.principal.name, context.client_id or ""
    is_strict = context.version >= strict_since
    charge = mutations.charge(context.image.quotas, user, client_id, time.monotonic(), is_strict=is_strict)
    if charge is None:
        return await do(items), 0
    weights = [weigh(item) for item in items]
    taken = [charge.take(weight) for weight in weights]
    done = iter(await do([item for item, is_taken in zip(items, taken, strict=True) if is_taken]))
    beyond = [item for item, is_taken in zip(items, taken, strict=True) if not is_taken]
    judged = iter([_exceeded(result) for result in await judge(beyond)] if beyond else [])
    results = []
    for weight, is_taken in zip(weights, taken, strict=True):
        result = next(done) if is_taken else next(judged)
        if is_taken and result.error_code != ErrorCode.NONE:
            charge.give_back(weight)
        results.append(result)
    return results, charge.finish()


def _exceeded(result: Any) -> Any:
    if result.error_code != ErrorCode.NONE:
        return result
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    return msgspec.structs.replace(result, error_code=code, error_message=EXCEEDED)
