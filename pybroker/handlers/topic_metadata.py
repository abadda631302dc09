"""The brokers and the controller in responses of Metadata and DescribeCluster.

Owns the choice of a broker's address: the registered address of the request's listener or, for this broker without an
advertised one, the address to which the client connected. Must not create topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pybroker.broker.failed_brokers import FailedBrokers
    from pybroker.handlers.context import BrokerContext, RequestContext


class BrokerAddress(msgspec.Struct, frozen=True):
    """One broker with its address for a client."""

    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


def broker_addresses(
    context: RequestContext, *, fenced: bool = False, also: FailedBrokers | None = None
) -> Iterator[BrokerAddress]:
    """Yield the brokers that have the request's listener.

    Fenced brokers are included if `fenced` is set, or if `also` still lists them.
    """
    services, listener = context.services, context.listener
    for broker in context.image.cluster.brokers.values():
        if broker.fenced and not fenced and (also is None or not also.is_named(broker)):
            continue
        address = broker.listeners.get(listener)
        if broker.id == services.config.node_id:
            address = services.advertised.get(listener)
            if address is None:
                address = context.origin.local_host, context.origin.local_port
        if address is not None:
            yield BrokerAddress(broker.id, address[0], address[1], broker.rack, broker.fenced)


def brokers_shown(context: BrokerContext) -> list[BrokerAddress]:
    """Return the brokers of a Metadata response. The list is never empty.

    It includes brokers that failed a moment ago, so that clients find new leaders before they drop the failed broker.
    If all are fenced, it has this broker only. Clients drop brokers that are missing in a response, and librdkafka does
    not recover from a response with topics and without brokers (#5301).
    """
    shown = list(broker_addresses(context, also=context.services.failed_brokers))
    if all(broker.fenced for broker in shown):
        own = context.services.config.node_id
        return [broker for broker in broker_addresses(context, fenced=True) if broker.node_id == own]
    return shown


def controller_shown(context: RequestContext, addresses: Iterable[BrokerAddress]) -> int:
    """Return the broker to which clients send metadata changes, -1 if the quorum has no leader.

    It is the active controller if it is one of `addresses`, else this broker, which forwards. A node without the broker
    role has no listener for clients (Kafka returns any broker, KIP-590).
    """
    leader = context.services.controller.leader_id
    own = context.services.config.node_id
    shown = {broker.node_id for broker in addresses}
    return leader if leader < 0 or leader in shown else own
