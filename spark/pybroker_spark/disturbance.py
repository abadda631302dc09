"""What clients have met of brokers that went away, as loads, writes and their reports say it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What a client has met of brokers that went away."""

    gap_s: float = 0.0
    """The longest time in which records of a producer waited and none was acknowledged."""
    retries: int = 0
    """Records that a producer sent again, once for each time."""
    leader_changes: int = 0
    """How often a partition came to another leader."""

    @classmethod
    def of_metrics(cls, metrics: Mapping[str, float]) -> Self:
        """What a native client's `metrics()` say."""
        return cls(
            metrics.get("acknowledgement-gap-max", 0.0) / 1000,
            int(metrics.get("record-retry-total", 0)),
            int(metrics["leader-changes-total"]),
        )

    @classmethod
    def of_all(cls, met: Iterable[Disturbance]) -> Self:
        """What several clients have met: the longest gap, the sums of the rest."""
        every = list(met)
        return cls(
            max((one.gap_s for one in every), default=0.0),
            sum(one.retries for one in every),
            sum(one.leader_changes for one in every),
        )

    @property
    def is_one(self) -> bool:
        """Whether brokers disturbed the client at all; every producer waits a little for acknowledgements."""
        return bool(self.retries or self.leader_changes)

    def __str__(self) -> str:
        changes = f"{self.leader_changes:,} change{'' if self.leader_changes == 1 else 's'} of leaders"
        return f"{changes}, {self.retries:,} records sent again, {self.gap_s:.2f} s without an acknowledgement at most"


UNDISTURBED = Disturbance()
"""No broker went away."""


def log_disturbance(what: str, met: Iterable[Disturbance]) -> None:
    """Log at WARN what the tasks that wrote `what` have met, where they met anything."""
    whole = Disturbance.of_all(met)
    if whole.is_one:
        _log.warning("%s was written through %s", what, whole)
