"""Which entities of client quotas somebody asks about (KIP-546).

Owns what a filter matches and what is wrong with one, in the words of Kafka's ClientQuotasImage. Pure functions of
values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.metadata.quotas import CLIENT_ID, IP, USER

if TYPE_CHECKING:
    from pybroker.metadata.quotas import QuotaEntity

EXACT, DEFAULT, ANY = 0, 1, 2
"""How a part is matched: by its name, as the default entity, by its type alone."""


class Component(msgspec.Struct, frozen=True):
    """What one part of an entity has to be."""

    type: str
    match_type: int
    match: str | None


class QuotaFilter(msgspec.Struct, frozen=True):
    """What an entity has to have; a `strict` one matches those that have nothing else."""

    components: tuple[Component, ...]
    strict: bool

    def fault(self) -> str | None:
        """Return Kafka's words for what is wrong; an unknown type is `unknown_type`'s."""
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
        """Return the first type that no entity has, where no fault comes before it."""
        for place, one in enumerate(self.components):
            if one.type and one.type not in (USER, CLIENT_ID, IP):
                return one.type if QuotaFilter(self.components[:place], self.strict).fault() is None else None
        return None

    def matches(self, entity: QuotaEntity) -> bool:
        """Whether an entity is asked about. A strict filter without parts matches none."""
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
