from __future__ import annotations

from typing import Any

from pybroker.metadata.image import BrokerRegistration, ClusterImage
from pybroker.replica.endpoints import plan_endpoints

INSIDE, OUTSIDE = {"INSIDE": ("10.0.0.2", 9092)}, {"OUTSIDE": ("kafka.example", 443)}


def broker(broker_id: int, listeners: dict[str, tuple[str, int]], **more: Any) -> BrokerRegistration:
    return BrokerRegistration(broker_id, b"i" * 16, 1, listeners, {}, **{"fenced": False, **more})


def cluster(*brokers: BrokerRegistration) -> ClusterImage:
    return ClusterImage({one.id: one for one in brokers})


def test_other_brokers_are_named_by_the_listener_that_is_this_brokers_only_one() -> None:
    others = broker(2, INSIDE, rack="r"), broker(3, {**OUTSIDE, "INSIDE": ("10.0.0.3", 9093)}), broker(4, OUTSIDE)
    brokers = cluster(broker(1, INSIDE), *others)
    assert plan_endpoints(brokers, 1) == [(2, "10.0.0.2", 9092, "r"), (3, "10.0.0.3", 9093, None)]


def test_a_broker_with_several_listeners_names_none() -> None:
    assert plan_endpoints(cluster(broker(1, {**INSIDE, **OUTSIDE}), broker(2, {**INSIDE, **OUTSIDE})), 1) == []


def test_brokers_that_are_fenced_or_not_registered_are_not_named() -> None:
    assert plan_endpoints(cluster(broker(1, INSIDE), broker(2, INSIDE, fenced=True)), 1) == []
    assert plan_endpoints(cluster(broker(2, INSIDE)), 1) == []
