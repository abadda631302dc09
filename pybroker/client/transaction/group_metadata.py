"""For whom a transaction commits offsets: a group, and the member of it that read them (KIP-447)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A group and its member. Without a member, nothing keeps a former member of the group from committing."""

    group_id: str
    member_id: str = ""
    generation: int = -1
    """Of a classic group, or the member's epoch (KIP-848)."""
    instance_id: str | None = None
