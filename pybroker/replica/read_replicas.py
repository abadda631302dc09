"""Which brokers consumers may be sent to that are nearer than the leader (KIP-392).

Arithmetic on the image and the settings. The choice among them is the data plane's, for each Fetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pybroker.config.keys.topic_keys import RACK_AWARE

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig
    from pybroker.metadata.image import ClusterImage


class ReadReplicas(NamedTuple):
    """The racks by which consumers are sent on: what `DataPlane.set_read_replicas` takes."""

    own_rack: str | None
    others: list[tuple[int, str]]
    """Broker id and rack."""


def plan_read_replicas(cluster: ClusterImage, config: BrokerConfig) -> ReadReplicas | None:
    """Return the racks of the other brokers, None where replica.selector.class keeps consumers at the leader.

    A broker is left out that is fenced, has no rack, or lacks a listener that this one has: its replica could not be
    reached by the listener that a Fetch came by.
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
