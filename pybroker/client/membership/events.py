"""Events of a member of a group of any protocol.

Owns the types only. Events of some protocols are in `classic_events`, `heartbeat_events`, `modern_events` and
`streams_events`.
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
