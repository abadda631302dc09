"""A change of a group in memory, without a record in the log; and the union type of a decision's records.

Owns these two types. Must not know why a group changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from pybroker.coordinator.group.records import GroupRecord
from pybroker.coordinator.group.transactional_records import Marker, TransactionalRecord

if TYPE_CHECKING:
    from pybroker.coordinator.group.ids import GroupId
    from pybroker.coordinator.group.view import Group


class GroupChange(msgspec.Struct, frozen=True):
    """A change of a group in memory only. No record is written to the log for it."""

    group_id: GroupId
    group: Group | None
    """The group after the change; None if it is deleted."""
    why: str = ""
    """The reason of the rebalance for log messages, with the reasons that clients send (KIP-800)."""


Record: TypeAlias = GroupRecord | GroupChange | TransactionalRecord | Marker
