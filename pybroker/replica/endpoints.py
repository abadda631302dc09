"""Where clients find the other brokers: what answers name beside a leader that is not here (KIP-951).

Arithmetic on the image. A table has one endpoint of each broker, whatever listener a request came by; so brokers are
named only where this broker has a single listener, and then as they are reached by the listener of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.metadata.image import ClusterImage

Endpoint = tuple[int, str, int, str | None]
"""Broker id, host, port and rack: what `TopicTable` takes."""


def plan_endpoints(cluster: ClusterImage, node_id: int) -> list[Endpoint]:
    """Return the endpoints of the brokers that are not fenced, but for this one: its clients have dialled it."""
    own = cluster.brokers.get(node_id)
    if own is None or len(own.listeners) != 1:
        return []
    (listener,) = own.listeners
    return [
        (broker.id, *broker.listeners[listener], broker.rack)
        for broker in cluster.brokers.values()
        if broker.id != node_id and not broker.fenced and listener in broker.listeners
    ]
