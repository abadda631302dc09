from __future__ import annotations

from typing import Any

from pybroker.metadata.image import BrokerRegistration, ClusterImage
from pybroker.replica.endpoints import plan_endpoints

INSIDE, OUTSIDE = {"INSIDE": ("10.0.0.2", 9092)}, {"OUTSIDE": ("kafka.example", 443)}


def broker(broker_id: int, listeners: dict[str, tuple[str, int]], **more: Any) -> BrokerRegistration:
    return BrokerRegistration(broker_id, b"i" * 16, 1, listeners, {}, **{"fenced": False, **more})


def cluster(*brokers: BrokerRegistration) -> ClusterImage:
    return ClusterImage({one.id: one for one in brokers})


def test_other_brokers_are_named_as_each_listener_of_this_one_reaches_them() -> None:
    others = broker(2, INSIDE, rack="r"), broker(3, {**OUTSIDE, "INSIDE": ("10.0.0.3", 9093)}), broker(4, OUTSIDE)
    by_inside = [(2, "10.0.0.2", 9092, "r"), (3, "10.0.0.3", 9093, None)]
    assert plan_endpoints(cluster(broker(1, INSIDE), *others), 1) == {"INSIDE": by_inside}
    by_outside = [(3, "kafka.example", 443, None), (4, "kafka.example", 443, None)]
    both = broker(1, {**INSIDE, **OUTSIDE})
    assert plan_endpoints(cluster(both, *others), 1) == {"INSIDE": by_inside, "OUTSIDE": by_outside}


def test_a_listener_that_no_other_broker_has_names_none() -> None:
    assert plan_endpoints(cluster(broker(1, INSIDE), broker(2, OUTSIDE)), 1) == {"INSIDE": []}


def test_brokers_that_are_fenced_or_not_registered_are_not_named() -> None:
    assert plan_endpoints(cluster(broker(1, INSIDE), broker(2, INSIDE, fenced=True)), 1) == {"INSIDE": []}
    assert plan_endpoints(cluster(broker(2, INSIDE)), 1) == {}
