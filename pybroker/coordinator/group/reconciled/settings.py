"""The settings that a group may have of its own, over those of the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def own_numbers(
    own: Mapping[str, str], names: Mapping[str, str], limits: Callable[[str], tuple[int, int]]
) -> dict[str, int]:
    """Return the numbers among a group's own settings, by field. `names` has the field of each of Kafka's names.

    They were inside the broker's limits when they were set. If the broker's limits have changed since, the nearest
    allowed value applies, as in Kafka.
    """
    changes = {}
    for key, name in names.items():
        text = own.get(key)
        if text is not None:
            low, high = limits(name)
            changes[name] = min(max(int(text), low), high)
    return changes
