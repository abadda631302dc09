"""Identifiers of the group coordinator."""

from __future__ import annotations

from typing import NewType

GroupId = NewType("GroupId", str)
MemberId = NewType("MemberId", str)
"""Made by the coordinator for a member of a classic group, by the client for one of KIP-848 (KIP-1082)."""
InstanceId = NewType("InstanceId", str)
"""Names a static member (KIP-345) over its restarts."""
Generation = NewType("Generation", int)
"""Of a classic group; grows with every rebalance."""

NO_GENERATION = Generation(-1)
"""What a commit names that comes from outside of the group."""
