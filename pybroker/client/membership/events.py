"""What happens to a member of a group of either protocol.

Owns the shapes alone; what only one protocol has is in `classic_events` and `modern_events`.
"""

from __future__ import annotations

from typing import NamedTuple


class Polled(NamedTuple):
    """The program is alive."""


class Left(NamedTuple):
    """The program leaves. What it has it has lost, unless it gave it up before."""


class CommitRefused(NamedTuple):
    """An OffsetCommit was refused as a member's."""

    code: int
    epoch: int
    """The generation or epoch that the commit named."""
