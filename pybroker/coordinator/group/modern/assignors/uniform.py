"""The assignor `uniform`: as even as subscriptions allow, and as much as possible stays where it is.

Owns the choice between its two ways: where all members want the same topics, filling up to a quota is enough; otherwise
loads have to be balanced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.modern.assignors.balance import assign_balanced
from pybroker.coordinator.group.modern.assignors.quota import assign_by_quota

if TYPE_CHECKING:
    from pybroker.coordinator.group.modern.assignors.spec import Assigned, GroupSpec


def assign_uniform(spec: GroupSpec) -> dict[str, Assigned]:
    """Return what each member is to have; a member that is not in it is to have nothing."""
    if not spec.members:
        return {}
    return assign_by_quota(spec) if spec.homogeneous else assign_balanced(spec)
