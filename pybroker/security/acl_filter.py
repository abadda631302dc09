"""Matches access control entries against a filter (KIP-290).

Must not know the purpose of a filter. Source: Kafka's ResourcePatternFilter and AccessControlEntryFilter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.security.operations import (
    ANY,
    OPERATION_NAMES,
    PATTERN_NAMES,
    PERMISSION_NAMES,
    RESOURCE_NAMES,
    WILDCARD,
    PatternType,
    name_of,
)

if TYPE_CHECKING:
    from pybroker.metadata.image import AccessControlEntry


class Filter(msgspec.Struct, frozen=True):
    """A filter of entries; 1 (ANY) and None match all values."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    """ANY for every pattern type, MATCH (2) for every pattern that includes the name."""
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def fault(self) -> str | None:
        """Return Kafka's message for a filter with an unknown number."""
        resource, pattern = name_of(RESOURCE_NAMES, self.resource_type), name_of(PATTERN_NAMES, self.pattern_type)
        if "UNKNOWN" in (resource, pattern):
            return "Unknown patternFilter."
        operation = name_of(OPERATION_NAMES, self.operation)
        if "UNKNOWN" in (operation, name_of(PERMISSION_NAMES, self.permission_type)):
            return "Unknown entryFilter."
        return None

    def matches(self, entry: AccessControlEntry) -> bool:
        """Return whether an entry matches this filter."""
        return (
            self.resource_type in (ANY, entry.resource_type)
            and self.operation in (ANY, entry.operation)
            and self.permission_type in (ANY, entry.permission_type)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self._matches_pattern(entry)
        )

    def _matches_pattern(self, entry: AccessControlEntry) -> bool:
        name, pattern = self.resource_name, self.pattern_type
        if pattern not in (ANY, PatternType.MATCH, entry.pattern_type):
            return False
        if name is None:
            return True
        if pattern != PatternType.MATCH:
            return name == entry.resource_name
        if entry.pattern_type == PatternType.PREFIXED:
            return name.startswith(entry.resource_name)
        return entry.resource_name in (name, WILDCARD)
