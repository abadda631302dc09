"""Evaluates access control entries: Kafka's StandardAuthorizer over the entries of the metadata image.

Owns which entries match a resource, and the decision. A denying entry takes precedence over all that allow. Must not
know requests or connections; `authorizer` does. Entries are found by the resource's name and by the lengths of
prefixes, so a decision takes constant time in the number of entries.

Source: Kafka's StandardAuthorizerData (KIP-801), KIP-290 for prefixes, KIP-679 for `allows_on_any`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.security.operations import (
    ALL,
    OPERATION_NAMES,
    PATTERN_NAMES,
    PERMISSION_NAMES,
    RESOURCE_NAMES,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pybroker.metadata.image import AccessControlEntry

ANYBODY = "User:*"
"""The principal of entries for all users."""

_IMPLIED_BY = {
    Operation.DESCRIBE: frozenset(
        (Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    ),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)),
}
"""Operations that imply another where they are allowed. A denied operation implies no other."""


class Decision(msgspec.Struct, frozen=True):
    """Whether an operation is allowed, and the rule of the decision, in the words of Kafka's audit log."""

    allowed: bool
    rule: str


class _Prefixes:
    """The prefixed entries of one resource type."""

    def __init__(self) -> None:
        self.by_prefix: dict[str, dict[AccessControlEntry, None]] = {}
        self.lengths: dict[int, int] = {}  # number of prefixes of each length

    def add(self, entry: AccessControlEntry) -> None:
        entries = self.by_prefix.setdefault(entry.resource_name, {})
        if not entries:
            length = len(entry.resource_name)
            self.lengths[length] = self.lengths.get(length, 0) + 1
        entries[entry] = None

    def remove(self, entry: AccessControlEntry) -> None:
        entries = self.by_prefix[entry.resource_name]
        del entries[entry]
        if not entries:
            del self.by_prefix[entry.resource_name]
            length = len(entry.resource_name)
            self.lengths[length] -= 1
            if not self.lengths[length]:
                del self.lengths[length]

    def of(self, name: str) -> Iterator[AccessControlEntry]:
        for length in self.lengths:
            if length <= len(name):
                yield from self.by_prefix.get(name[:length], ())


class AclIndex:
    """Access control entries by resource pattern. Used from one thread."""

    def __init__(self) -> None:
        self._literal: dict[tuple[int, str], dict[AccessControlEntry, None]] = {}
        self._prefixed: dict[int, _Prefixes] = {}

    def update(self, before: Mapping[bytes, AccessControlEntry], after: Mapping[bytes, AccessControlEntry]) -> None:
        """Replace the entries of one image by those of another."""
        for acl_id, entry in before.items():
            if after.get(acl_id) != entry:
                self._remove(entry)
        for acl_id, entry in after.items():
            if before.get(acl_id) != entry:
                self._add(entry)

    def _add(self, entry: AccessControlEntry) -> None:
        if entry.pattern_type == PatternType.PREFIXED:
            self._prefixed.setdefault(entry.resource_type, _Prefixes()).add(entry)
        else:
            self._literal.setdefault((entry.resource_type, entry.resource_name), {})[entry] = None

    def _remove(self, entry: AccessControlEntry) -> None:
        if entry.pattern_type == PatternType.PREFIXED:
            self._prefixed[entry.resource_type].remove(entry)
            return
        key = entry.resource_type, entry.resource_name
        del self._literal[key][entry]
        if not self._literal[key]:
            del self._literal[key]

    def concerning(self, resource_type: int, name: str) -> Iterator[AccessControlEntry]:
        """Yield the entries whose pattern matches a resource."""
        yield from self._literal.get((resource_type, name), ())
        if name != WILDCARD:
            yield from self._literal.get((resource_type, WILDCARD), ())
        prefixed = self._prefixed.get(resource_type)
        if prefixed is not None:
            yield from prefixed.of(name)

    def of_type(self, resource_type: int) -> Iterator[AccessControlEntry]:
        """Yield all entries of resources of a type."""
        for (kind, _), entries in self._literal.items():
            if kind == resource_type:
                yield from entries
        prefixed = self._prefixed.get(resource_type)
        for entries in () if prefixed is None else prefixed.by_prefix.values():
            yield from entries


def concerns(entry: AccessControlEntry, principal: str, host: str, operation: int) -> bool:
    """Whether an entry of a resource applies to an operation of this principal from this host."""
    if entry.principal not in (principal, ANYBODY) or entry.host not in (host, WILDCARD):
        return False
    if entry.operation in (ALL, operation):
        return True
    if entry.permission_type != Permission.ALLOW:
        return False
    # The key is an int, which is equal to the operation that it numbers.
    return entry.operation in _IMPLIED_BY.get(operation, ())  # type: ignore[call-overload]


def decide(
    index: AclIndex, principal: str, host: str, operation: int, resource_type: int, name: str, *, if_none: bool
) -> Decision:
    """Authorize one operation on one resource; `if_none` is the result where no entry matches the resource."""
    allowing: AccessControlEntry | None = None
    found = False
    for entry in index.concerning(resource_type, name):
        found = True
        if concerns(entry, principal, host, operation):
            if entry.permission_type == Permission.DENY:
                return Decision(False, _words(entry))
            allowing = entry
    if allowing is not None:
        return Decision(True, _words(allowing))
    allowed = if_none and not found
    return Decision(allowed, "DefaultAllow" if allowed else "DefaultDeny")


def allows_on_any(
    index: AclIndex, principal: str, host: str, operation: int, resource_type: int, *, if_none: bool
) -> bool:
    """Whether the operation is allowed on any resource of a type (KIP-679).

    An allowing entry counts unless a denying one covers its whole pattern: the same name, a prefix of it, or `*`.
    Kafka first authorizes a resource with the name `hardcode`, so the result without a matching entry counts too.
    """
    if decide(index, principal, host, operation, resource_type, "hardcode", if_none=if_none).allowed:
        return True
    denied_names: set[str] = set()
    denied_prefixes: set[str] = set()
    allowing: list[AccessControlEntry] = []
    for entry in index.of_type(resource_type):
        # Kafka compares only the operation itself here: implied operations do not count.
        if not _names(entry, principal, host, operation):
            continue
        if entry.permission_type == Permission.ALLOW:
            allowing.append(entry)
        elif entry.pattern_type == PatternType.PREFIXED:
            denied_prefixes.add(entry.resource_name)
        elif entry.resource_name == WILDCARD:
            return False
        else:
            denied_names.add(entry.resource_name)
    return any(not _is_covered(entry, denied_names, denied_prefixes) for entry in allowing)


def _names(entry: AccessControlEntry, principal: str, host: str, operation: int) -> bool:
    return (
        entry.principal in (principal, ANYBODY)
        and entry.host in (host, WILDCARD)
        and entry.operation in (ALL, operation)
    )


def _is_covered(entry: AccessControlEntry, names: set[str], prefixes: set[str]) -> bool:
    name = entry.resource_name
    if entry.pattern_type == PatternType.LITERAL:
        if name == WILDCARD:
            return False
        if name in names:
            return True
    return any(name[:length] in prefixes for length in range(1, len(name) + 1))


def _words(entry: AccessControlEntry) -> str:
    kind, pattern = RESOURCE_NAMES[entry.resource_type], PATTERN_NAMES[entry.pattern_type]
    return (
        f"MatchingAcl(acl=StandardAcl(resourceType={kind}, resourceName={entry.resource_name}, "
        f"patternType={pattern}, principal={entry.principal}, host={entry.host}, "
        f"operation={OPERATION_NAMES[entry.operation]}, permissionType={PERMISSION_NAMES[entry.permission_type]}))"
    )
