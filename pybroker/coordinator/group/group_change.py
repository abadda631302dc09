"""A change of a group that is decided and not written down; and what a decision may hand to the runner.

Owns the two shapes. Must not know why a group changes.
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
    """A group has changed in a way that is not written down."""

    group_id: GroupId
    group: Group | None
    """The group as it is now; None where it is gone."""
    why: str = ""
    """For the log: why it rebalances, with the reasons that clients give (KIP-800)."""


Record: TypeAlias = GroupRecord | GroupChange | TransactionalRecord | Marker
