"""Controller mutation quotas: requests that create or delete partitions (KIP-599).

Owns the rejection of items above the quota: THROTTLING_QUOTA_EXCEEDED for clients that know it. Must not know the
items.

Items that fail for another reason keep their error and do not count, as in Kafka. Each item is charged first, and
refunded if it fails.
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
    check: Callable[[Sequence[Item]], Awaitable[list[Any]]],
) -> tuple[list[Any], int]:
    """Return the results of `do`, one for each item in their order, and the throttle time in ms.

    Items above the quota have the results of `check` instead.

    `weigh` returns the number of partitions of an item, 0 for an item that will fail. `check` validates like `do`,
    without changes. `strict_since` is the first version whose clients know the error. Results have `error_code`.
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
    checked = iter([_exceeded(result) for result in await check(beyond)] if beyond else [])
    results = []
    for weight, is_taken in zip(weights, taken, strict=True):
        result = next(done) if is_taken else next(checked)
        if is_taken and result.error_code != ErrorCode.NONE:
            charge.give_back(weight)
        results.append(result)
    return results, charge.finish()


def _exceeded(result: Any) -> Any:
    if result.error_code != ErrorCode.NONE:
        return result
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    return msgspec.structs.replace(result, error_code=code, error_message=EXCEEDED)
