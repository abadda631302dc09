from __future__ import annotations

from pybroker.config.broker import BrokerConfig
from pybroker.metadata.image import BrokerRegistration, ClusterImage
from pybroker.replica.native import ReplicationSettings
from pybroker.replica.sources import build_replication_settings, plan_sources


def broker(id_: int, *, fenced: bool = False, listener: str = "PLAINTEXT") -> BrokerRegistration:
    return BrokerRegistration(id_, b"", 10 + id_, {listener: (f"host-{id_}", 9092)}, {listener: 0}, fenced=fenced)


def test_the_others_are_fetched_from_on_the_listener_between_brokers() -> None:
    brokers = [broker(1), broker(2), broker(3, fenced=True), broker(4, listener="OTHER")]
    cluster = ClusterImage({one.id: one for one in brokers})
    assert plan_sources(cluster, "PLAINTEXT", 1) == [(2, "host-2", 9092, 12), (3, "host-3", 9092, 13)]


def test_the_settings_of_replication_are_complete() -> None:
    assert isinstance(build_replication_settings(BrokerConfig({"node.id": "1"}), 7), ReplicationSettings)
