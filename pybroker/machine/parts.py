"""Large requests in parts: each part is one decision of a machine, and the loop serves others in between.

Owns how much of a request is decided at a time. A part is committed before the next one is decided, so it sees what
those before it have changed; the items of such requests succeed or fail by themselves, so no client sees the parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

MAX_WEIGHT = 500
"""Of the items of a part, a partition being 1: a few milliseconds. An item that is heavier is a part of its own."""
MANY = 2_000
"""Items up to which a request is not cut: its one decision is as short as its answer is quick."""


def parts(items: Sequence[T], weight_of: Callable[[T], int] = lambda _: 1, most: int = MAX_WEIGHT) -> Iterator[list[T]]:
    """Cut items into runs whose weights are no more than `most` together, in their order; none of no items."""
    begin = weight = 0
    for index, item in enumerate(items):
        own = max(weight_of(item), 1)
        if index > begin and weight + own > most:
            yield list(items[begin:index])
            begin, weight = index, 0
        weight += own
    if begin < len(items):
        yield list(items[begin:])


def parts_of_lists(owners: Sequence[S], field: str) -> Iterator[list[S]]:
    """Cut structs that each have a list in `field` as `parts` does the elements of all those lists.

    An owner whose list is cut comes in several parts, each with some of its elements, one with an empty list in none.
    """
    cut = [msgspec.structs.replace(owner, **{field: some}) for owner in owners for some in parts(getattr(owner, field))]
    return parts(cut, lambda owner: len(getattr(owner, field)))


def length_of_lists(owners: Sequence[msgspec.Struct], field: str) -> int:
    """Count the elements of the lists that structs have in `field`."""
    return sum(len(getattr(owner, field)) for owner in owners)
