"""Identifiers of the group coordinator."""

from __future__ import annotations

from typing import NewType

GroupId = NewType("GroupId", str)
MemberId = NewType("MemberId", str)
"""Chosen by the coordinator for a member of a classic group, by the client for one of KIP-848 (KIP-1082)."""
InstanceId = NewType("InstanceId", str)
"""Identifies a static member (KIP-345) across restarts."""
Generation = NewType("Generation", int)
"""Of a classic group; incremented by every rebalance."""

NO_GENERATION = Generation(-1)
"""The generation of a commit from outside of the group."""
