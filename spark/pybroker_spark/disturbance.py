"""The effects of broker failures on clients, for reports of loads and writes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """The effects of broker failures on a client."""

    gap_s: float = 0.0
    """The longest time in seconds during which records of a producer waited without any acknowledgement."""
    retries: int = 0
    """Records that a producer sent again, counted for each retry."""
    leader_changes: int = 0
    """Number of leader changes of partitions."""

    @classmethod
    def of_metrics(cls, metrics: Mapping[str, float]) -> Self:
        """Read it from a native client's `metrics()`."""
        return cls(
            metrics.get("acknowledgement-gap-max", 0.0) / 1000,
            int(metrics.get("record-retry-total", 0)),
            int(metrics["leader-changes-total"]),
        )

    @classmethod
    def of_all(cls, met: Iterable[Disturbance]) -> Self:
        """Combine several clients: the longest gap, and the sums of the other values."""
        every = list(met)
        return cls(
            max((one.gap_s for one in every), default=0.0),
            sum(one.retries for one in every),
            sum(one.leader_changes for one in every),
        )

    @property
    def is_one(self) -> bool:
        """Whether there were any retries or leader changes; every producer waits a little for acknowledgements."""
        return bool(self.retries or self.leader_changes)

    def __str__(self) -> str:
        changes = f"{self.leader_changes:,} change{'' if self.leader_changes == 1 else 's'} of leaders"
        return f"{changes}, {self.retries:,} records sent again, {self.gap_s:.2f} s without an acknowledgement at most"


UNDISTURBED = Disturbance()
"""No broker failed."""


def log_disturbance(what: str, met: Iterable[Disturbance]) -> None:
    """Log at WARN the disturbance of the tasks that wrote `what`, if there was any."""
    whole = Disturbance.of_all(met)
    if whole.is_one:
        _log.warning("%s was written through %s", what, whole)
