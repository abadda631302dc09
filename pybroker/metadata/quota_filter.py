"""Filters of client quota entities in DescribeClientQuotas (KIP-546).

Owns the matching and the validation of filters, with the messages of Kafka's ClientQuotasImage. Pure functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.metadata.quotas import CLIENT_ID, IP, USER

if TYPE_CHECKING:
    from pybroker.metadata.quotas import QuotaEntity

EXACT, DEFAULT, ANY = 0, 1, 2
"""The match type of a component: an exact name, the default entity, or any name of the type."""


class Component(msgspec.Struct, frozen=True):
    """The filter of one part of an entity."""

    type: str
    match_type: int
    match: str | None


class QuotaFilter(msgspec.Struct, frozen=True):
    """Matches entities that have all components. A `strict` filter matches only entities without other parts."""

    components: tuple[Component, ...]
    strict: bool

    def fault(self) -> str | None:
        """Return Kafka's message if the filter is invalid, else None. `unknown_type` detects unknown types."""
        seen: set[str] = set()
        for one in self.components:
            if not one.type:
                return "Invalid empty entity type."
            if one.type in seen:
                return f"Entity type {one.type} cannot appear more than once in the filter."
            seen.add(one.type)
            fault = _match_fault(one)
            if fault is not None:
                return fault
        if IP in seen and seen & {USER, CLIENT_ID}:
            return (
                "Invalid entity filter component combination. IP filter component should not be used with "
                "user or clientId filter component."
            )
        return None

    def unknown_type(self) -> str | None:
        """Return the first unknown entity type, unless a component before it is invalid."""
        for place, one in enumerate(self.components):
            if one.type and one.type not in (USER, CLIENT_ID, IP):
                return one.type if QuotaFilter(self.components[:place], self.strict).fault() is None else None
        return None

    def matches(self, entity: QuotaEntity) -> bool:
        """Return whether the filter matches an entity. A strict filter without components matches none."""
        names = dict(entity)
        if self.strict and len(names) != len(self.components):
            return False
        return all(
            one.type in names and (one.match_type == ANY or names[one.type] == one.match) for one in self.components
        )


def _match_fault(one: Component) -> str | None:
    if one.match_type not in (EXACT, DEFAULT, ANY):
        return f"Unknown match type {one.match_type}"
    if one.match_type == EXACT:
        if one.match is None:
            return "Request specified MATCH_TYPE_EXACT, but set match string to null."
    elif one.match is not None:
        name = "MATCH_TYPE_DEFAULT" if one.match_type == DEFAULT else "MATCH_TYPE_SPECIFIED"
        return f"Request specified {name}, but also specified a match string."
    return None
