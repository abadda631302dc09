"""Where clients find the other brokers: what answers name beside a leader that is not here (KIP-951).

Arithmetic on the image. A client gets what the brokers advertise by the listener that it has come by, as in Metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.metadata.image import ClusterImage

Endpoint = tuple[int, str, int, str | None]
"""Broker id, host, port and rack: what `TopicTable` takes."""


def plan_endpoints(cluster: ClusterImage, node_id: int) -> dict[str, list[Endpoint]]:
    """Return, by listener of this broker, the endpoints of the others that are not fenced and have it.

    This broker is left out: its clients have dialled it.
    """
    own = cluster.brokers.get(node_id)
    others = [broker for broker in cluster.brokers.values() if broker.id != node_id and not broker.fenced]
    return {
        listener: [
            (broker.id, *broker.listeners[listener], broker.rack) for broker in others if listener in broker.listeners
        ]
        for listener in (() if own is None else own.listeners)
    }
