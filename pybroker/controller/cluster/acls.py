"""Creating and deleting access control entries.

Owns the validation of entries, with Kafka's messages, and that no two entries are equal. Must not know which clients
are authorized, nor the effect of an entry.

Source: Kafka's AclControlManager; `Filter` is its AclBindingFilter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.controller.cluster.events import Result
from pybroker.machine.machine import Outcome
from pybroker.metadata.image import AccessControlEntry
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.access_control_entry import AccessControlEntryRecord
from pybroker.protocol.messages.records.remove_access_control_entry import RemoveAccessControlEntryRecord
from pybroker.protocol.schema import ZERO_UUID
from pybroker.security.acl_filter import Filter
from pybroker.security.operations import (
    OPERATION_NAMES,
    PATTERN_NAMES,
    PERMISSION_NAMES,
    RESOURCE_NAMES,
    name_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.schema import Message

_CONCRETE_PATTERNS = (3, 4)
_CONCRETE_PERMISSIONS = (2, 3)
_FIRST_CONCRETE = 2
"""The first concrete resource type and operation; the lower values are UNKNOWN and ANY."""


class CreateAcls(msgspec.Struct, frozen=True):
    """Create entries, each by itself. The reply is a `Result` for each, in their order."""

    entries: Sequence[AccessControlEntry]
    ids: Sequence[bytes]
    """A fresh id for each entry."""


class DeletedAcls(msgspec.Struct, frozen=True):
    """The result of one filter."""

    result: Result
    entries: tuple[AccessControlEntry, ...] = ()


class DeleteAcls(msgspec.Struct, frozen=True):
    """Delete the entries that filters match. The reply is a `DeletedAcls` for each filter, in their order."""

    filters: Sequence[Filter]
    removed: Sequence[AccessControlEntry] = ()
    """Entries that earlier filters of the same request have deleted."""


def create_acls(image: MetadataImage, event: CreateAcls) -> Outcome[Message, list[Result]]:
    """Decide about new entries; an entry that exists is a success without a record."""
    existing = set(image.acls.by_id.values())
    records: list[Message] = []
    results: list[Result] = []
    for entry, acl_id in zip(event.entries, event.ids, strict=True):
        fault = fault_of(entry)
        if fault is None and acl_id == ZERO_UUID:
            fault = "the id of an entry is not zero"
        if fault is not None:
            results.append(Result(ErrorCode.INVALID_REQUEST, fault))
            continue
        results.append(Result(ErrorCode.NONE))
        if entry not in existing:
            existing.add(entry)
            records.append(AccessControlEntryRecord(id=acl_id, **entry._asdict()))
    return Outcome(tuple(records), results)


def delete_acls(image: MetadataImage, event: DeleteAcls) -> Outcome[Message, list[DeletedAcls]]:
    """Decide about filters. An entry that several filters match is in the result of each, as in Kafka."""
    removed: dict[bytes, None] = {}
    results: list[DeletedAcls] = []
    for one in event.filters:
        fault = one.fault()
        if fault is not None:
            results.append(DeletedAcls(Result(ErrorCode.INVALID_REQUEST, fault)))
            continue
        matched = {acl_id: entry for acl_id, entry in image.acls.by_id.items() if one.matches(entry)}
        removed |= dict.fromkeys(matched)
        again = tuple(entry for entry in event.removed if one.matches(entry))
        results.append(DeletedAcls(Result(ErrorCode.NONE), again + tuple(matched.values())))
    return Outcome(tuple(RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed), results)


def fault_of(entry: AccessControlEntry) -> str | None:
    """Return Kafka's message for what is wrong with a new entry, None if it is valid."""
    if name_of(RESOURCE_NAMES, entry.resource_type) == "UNKNOWN" or entry.resource_type < _FIRST_CONCRETE:
        return f"Invalid resourceType {name_of(RESOURCE_NAMES, entry.resource_type)}"
    if entry.pattern_type not in _CONCRETE_PATTERNS:
        return f"Invalid patternType {name_of(PATTERN_NAMES, entry.pattern_type)}"
    if name_of(OPERATION_NAMES, entry.operation) == "UNKNOWN" or entry.operation < _FIRST_CONCRETE:
        return f"Invalid operation {name_of(OPERATION_NAMES, entry.operation)}"
    if entry.permission_type not in _CONCRETE_PERMISSIONS:
        return f"Invalid permissionType {name_of(PERMISSION_NAMES, entry.permission_type)}"
    if not entry.resource_name:
        return "Resource name should not be empty"
    if ":" not in entry.principal:
        return (
            f"Could not parse principal from `{entry.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    return None
