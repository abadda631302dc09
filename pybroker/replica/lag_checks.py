"""The check for lagging replicas, every half of replica.lag.time.max.ms (Kafka's `isr-expiration`).

It also runs when a broker's replicas may not be in sync any more: high watermarks then stop waiting for them. Owns
the timer. Must not handle a lagging replica: `in_sync` does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pybroker.replica.roles import plan_eligible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pybroker.config.broker import BrokerConfig
    from pybroker.metadata.image import MetadataImage
    from pybroker.replica.in_sync import InSyncReplicas
    from pybroker.replica.native import Partition


class LagChecks:
    """Checks periodically until it is stopped. Used from one event loop."""

    def __init__(
        self,
        in_sync: InSyncReplicas,
        partitions: Callable[[], Sequence[Partition]],
        config: Callable[[], BrokerConfig],
    ) -> None:
        """`config` returns the current configuration."""
        self._in_sync = in_sync
        self._partitions = partitions
        self._config = config
        self._handle: asyncio.TimerHandle | None = None
        self._eligible: frozenset[int] = frozenset()

    def begin(self) -> None:
        """Schedule the first check after half of replica.lag.time.max.ms."""
        half_s = self._config().replica_lag_time_max_ms / 2000
        self._handle = asyncio.get_running_loop().call_later(half_s, self._check)

    def published(self, image: MetadataImage) -> None:
        """Check at once if the published image has made a broker ineligible for ISRs."""
        before, self._eligible = self._eligible, frozenset(plan_eligible(image.cluster))
        if before - self._eligible:
            self._step()

    def stop(self) -> None:
        """Stop the checks."""
        if self._handle is not None:
            self._handle.cancel()

    def _check(self) -> None:
        self._step()
        self.begin()

    def _step(self) -> None:
        self._in_sync.step_lag(self._partitions(), self._config().replica_lag_time_max_ms)
