"""Split large requests into parts: each part is one event of a machine, and the loop serves other requests in between.

Owns the size of a part. A part is committed before the next one is handled, so each part sees the changes of the
earlier ones. The items of such requests succeed or fail independently, so clients do not notice the parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

MAX_WEIGHT = 500
"""Maximum total weight of a part, where a partition weighs 1: a few milliseconds of work.

A heavier item is a part of its own.
"""
MANY = 2_000
"""Requests of up to this number of items are not split."""


def parts(items: Sequence[T], weight_of: Callable[[T], int] = lambda _: 1, most: int = MAX_WEIGHT) -> Iterator[list[T]]:
    """Split items, in order, into runs of a total weight of at most `most`. Yields nothing for no items."""
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
    """Split structs by the elements of their lists in `field`, as `parts` does with items.

    A struct whose list is split is in several parts, each with some of the elements. A struct with an empty list is in
    none.
    """
    cut = [msgspec.structs.replace(owner, **{field: some}) for owner in owners for some in parts(getattr(owner, field))]
    return parts(cut, lambda owner: len(getattr(owner, field)))


def length_of_lists(owners: Sequence[msgspec.Struct], field: str) -> int:
    """Return the total length of the lists that the structs have in `field`."""
    return sum(len(getattr(owner, field)) for owner in owners)
