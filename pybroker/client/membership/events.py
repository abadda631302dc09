"""Events of a member of a group of either protocol.

Owns the types only. Events of one protocol are in `classic_events` and `modern_events`.
"""

from __future__ import annotations

from typing import NamedTuple


class Polled(NamedTuple):
    """The program polls."""


class Left(NamedTuple):
    """The program leaves. Partitions that were not revoked before are lost."""


class CommitRefused(NamedTuple):
    """A commit as a member was rejected."""

    code: int
    epoch: int
    """The generation or epoch of the commit."""
