from __future__ import annotations

from typing import Any

from pybroker.config.broker import BrokerConfig
from pybroker.config.keys.topic_keys import RACK_AWARE, REPLICA_SELECTORS
from pybroker.metadata.image import BrokerRegistration, ClusterImage
from pybroker.replica.read_replicas import plan_read_replicas

INSIDE, OUTSIDE = {"INSIDE": ("10.0.0.2", 9092)}, {"OUTSIDE": ("kafka.example", 443)}


def broker(broker_id: int, rack: str | None, **more: Any) -> BrokerRegistration:
    given = {"fenced": False, "listeners": {**INSIDE, **OUTSIDE}, **more}
    return BrokerRegistration(broker_id, b"i" * 16, 1, given.pop("listeners"), {}, rack=rack, **given)


def plan(*brokers: BrokerRegistration, selector: str = RACK_AWARE) -> Any:
    config = BrokerConfig({"node.id": "1", "replica.selector.class": selector})
    return plan_read_replicas(ClusterImage({one.id: one for one in brokers}), config)


def test_consumers_are_sent_to_brokers_of_other_racks_and_of_the_same() -> None:
    assert plan(broker(1, "a"), broker(2, "b"), broker(3, "a")) == ("a", [(2, "b"), (3, "a")])
    assert plan(broker(1, None), broker(2, "b")) == (None, [(2, "b")])


def test_brokers_that_are_fenced_or_without_a_rack_or_without_a_listener_are_left_out() -> None:
    others = broker(2, "b", fenced=True), broker(3, None), broker(4, "b", listeners=INSIDE)
    assert plan(broker(1, "a"), *others) == ("a", [])


def test_without_the_rack_aware_selector_the_leader_alone_is_read_from() -> None:
    leader_selector, _ = REPLICA_SELECTORS
    assert plan(broker(1, "a"), broker(2, "b"), selector=leader_selector) is None
    assert plan(broker(1, "a"), broker(2, "b"), selector="") is None
    assert plan(broker(2, "b")) is None, "this broker is not registered yet"
