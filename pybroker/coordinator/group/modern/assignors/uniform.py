"""The assignor `uniform`: as even as subscriptions allow, with as few moves as possible.

Owns the choice between its two algorithms: filling quotas if all members subscribe to the same topics, otherwise
balancing loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.modern.assignors.balance import assign_balanced
from pybroker.coordinator.group.modern.assignors.quota import assign_by_quota

if TYPE_CHECKING:
    from pybroker.coordinator.group.modern.assignors.spec import Assigned, GroupSpec


def assign_uniform(spec: GroupSpec) -> dict[str, Assigned]:
    """Return the partitions of each member; a member that is not in the result gets none."""
    if not spec.members:
        return {}
    return assign_by_quota(spec) if spec.homogeneous else assign_balanced(spec)
