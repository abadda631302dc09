"""Endpoints of the other brokers for clients: responses name them beside a leader on another broker (KIP-951).

Computed from the image. A client gets the advertised endpoints of its own listener, as in Metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.metadata.image import ClusterImage

Endpoint = tuple[int, str, int, str | None]
"""Broker id, host, port and rack: an argument of `TopicTable`."""


def plan_endpoints(cluster: ClusterImage, node_id: int) -> dict[str, list[Endpoint]]:
    """Return, by listener of this broker, the endpoints of the other unfenced brokers with that listener.

    This broker is left out: its clients are connected to it.
    """
    own = cluster.brokers.get(node_id)
    others = [broker for broker in cluster.brokers.values() if broker.id != node_id and not broker.fenced]
    return {
        listener: [
            (broker.id, *broker.listeners[listener], broker.rack) for broker in others if listener in broker.listeners
        ]
        for listener in (() if own is None else own.listeners)
    }
