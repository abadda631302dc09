"""The group and the member whose offsets a transaction commits (KIP-447)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A group and its member. Without a member, a former member of the group is not fenced from committing."""

    group_id: str
    member_id: str = ""
    generation: int = -1
    """The generation in a classic group, or the member's epoch (KIP-848)."""
    instance_id: str | None = None
