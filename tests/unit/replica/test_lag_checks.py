from __future__ import annotations

from typing import Any

import msgspec

from pybroker.config.broker import BrokerConfig
from pybroker.metadata.image import EMPTY_IMAGE, BrokerRegistration, ClusterImage, MetadataImage
from pybroker.replica.lag_checks import LagChecks


class InSync:
    def __init__(self) -> None:
        self.looks: list[tuple[Any, int]] = []

    def step_lag(self, partitions: Any, max_lag_ms: int) -> None:
        self.looks.append((partitions, max_lag_ms))


def image(**changed: bool) -> MetadataImage:
    brokers = {
        id_: BrokerRegistration(id_, bytes(16), id_, listeners={}, security_protocols={}, fenced=False)
        for id_ in (1, 2)
    }
    brokers[2] = msgspec.structs.replace(brokers[2], **changed)
    return msgspec.structs.replace(EMPTY_IMAGE, cluster=ClusterImage(brokers))


def test_a_broker_that_is_fenced_or_stops_is_waited_for_no_more() -> None:
    in_sync = InSync()
    config = BrokerConfig({"log.dirs": "unused", "replica.lag.time.max.ms": "30000"})
    checks = LagChecks(in_sync, lambda: ["a partition"], lambda: config)  # type: ignore[arg-type, list-item]
    checks.published(image())
    checks.published(image())
    assert in_sync.looks == []
    checks.published(image(in_controlled_shutdown=True))
    assert in_sync.looks == [(["a partition"], 30_000)]
    checks.published(image(in_controlled_shutdown=True, fenced=True))
    checks.published(image())
    assert len(in_sync.looks) == 1
    checks.published(image(fenced=True))
    assert len(in_sync.looks) == 2
