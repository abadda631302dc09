"""What clients of a cluster asked and what they were answered, as values with the times of both.

Owns the form of a history alone. Times are seconds of one monotonic clock. Must not know how it was recorded.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple


class Outcome(enum.Enum):
    """What a producer knows of a record that it has sent."""

    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    """It is certain that the record is not, and will never be, in the log (of an aborted transaction as well)."""
    UNKNOWN = "unknown"


class Where(NamedTuple):
    """A partition."""

    topic: str
    partition: int


class Send(NamedTuple):
    """A record that a producer sent; every value is sent once."""

    where: Where
    producer: str
    number: int
    """Which of its producer's records in this partition it is: those with higher numbers were sent later."""
    value: str
    key: str | None
    outcome: Outcome
    offset: int
    """Where it was acknowledged; -1 for other outcomes, and where the leader knew a repetition and no offset of it."""
    begun: float
    ended: float


class Record(NamedTuple):
    """A record as a reader received it."""

    offset: int
    value: str
    key: str | None
    leader_epoch: int


class Poll(NamedTuple):
    """Records that a reader received at one time, in their order."""

    where: Where
    reader: str
    """Names one unbroken reading: a reader that goes to another position, or is assigned anew, has another name."""
    group: str | None
    records: tuple[Record, ...]
    begun: float
    ended: float


class EndRead(NamedTuple):
    """An answer to "where does the partition end for consumers"."""

    where: Where
    offset: int
    leader_epoch: int
    begun: float
    ended: float


class Commit(NamedTuple):
    """A commit of a group's offset that was acknowledged, or a committed offset that was read."""

    where: Where
    group: str
    offset: int
    begun: float
    ended: float
    is_read: bool


class LeaderEpoch(NamedTuple):
    """A leader epoch of a partition."""

    epoch: int
    began: float
    """When it was written to the metadata log, at the latest."""


@dataclass
class History:
    """All that was seen, and the contents of every partition after all faults were mended."""

    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    ends: list[EndRead] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    final: dict[Where, list[Record]] = field(default_factory=dict)
    leader_epochs: dict[Where, list[LeaderEpoch]] = field(default_factory=dict)
    """The leader epochs of partitions in their order, where they are known."""
    compacted: set[str] = field(default_factory=set)
    """Topics where a record may give way to a later one of its key."""
    drained: set[str] = field(default_factory=set)
    """Groups that have read to the end of every partition in `final`."""
