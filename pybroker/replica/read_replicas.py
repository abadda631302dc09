"""The brokers from which consumers may fetch instead of the leader (KIP-392).

Computed from the image and the configuration. The data plane chooses among them for each Fetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pybroker.config.keys.topic_keys import RACK_AWARE

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig
    from pybroker.metadata.image import ClusterImage


class ReadReplicas(NamedTuple):
    """The racks for fetches from followers: arguments of `DataPlane.set_read_replicas`."""

    own_rack: str | None
    others: list[tuple[int, str]]
    """Broker id and rack."""


def plan_read_replicas(cluster: ClusterImage, config: BrokerConfig) -> ReadReplicas | None:
    """Return the racks of the other brokers, None if replica.selector.class keeps consumers at the leader.

    A broker is left out if it is fenced, has no rack, or lacks a listener that this broker has: clients of that
    listener could not reach its replica.
    """
    own = cluster.brokers.get(config.node_id)
    if config.replica_selector_class != RACK_AWARE or own is None:
        return None
    others = [
        (broker.id, broker.rack)
        for broker in cluster.brokers.values()
        if broker.id != own.id and not broker.fenced and broker.rack and own.listeners.keys() <= broker.listeners.keys()
    ]
    return ReadReplicas(own.rack, others)
