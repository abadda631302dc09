"""Brokers, topics and partitions of the image in the shapes that Metadata and DescribeCluster answer with.

Owns which address of a broker a client receives: the one registered for the listener it came by or, for this broker
when nothing is advertised, the one it dialled. Must not create anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pybroker.broker.failed_brokers import FailedBrokers
    from pybroker.handlers.context import BrokerContext, RequestContext


class BrokerAddress(msgspec.Struct, frozen=True):
    """One broker as a client sees it."""

    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


def broker_addresses(
    context: RequestContext, *, fenced: bool = False, also: FailedBrokers | None = None
) -> Iterator[BrokerAddress]:
    """Yield the brokers that can be reached by the listener that the request came by.

    Fenced ones only on demand: all, or those that `also` still names.
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
    """Return the brokers that an answer to Metadata names: never none.

    One that died a moment ago is among them, so that clients learn of new leaders before they forget it.
    Where all are fenced, as after the death of all of them, it is this broker that answers. Clients forget brokers
    that an answer does not name, and librdkafka does not recover from one with topics and without brokers (#5301).
    """
    shown = list(broker_addresses(context, also=context.services.failed_brokers))
    if all(broker.fenced for broker in shown):
        own = context.services.config.node_id
        return [broker for broker in broker_addresses(context, fenced=True) if broker.node_id == own]
    return shown


def controller_shown(context: RequestContext, addresses: Iterable[BrokerAddress]) -> int:
    """Return the broker that clients are to send changes of the metadata to, -1 where the quorum has no leader.

    It is the active controller where that is a broker among `addresses`, else this broker, which forwards: a node that
    is a controller alone has no listener for clients (Kafka names any broker, KIP-590).
    """
    leader = context.services.controller.leader_id
    own = context.services.config.node_id
    shown = {broker.node_id for broker in addresses}
    return leader if leader < 0 or leader in shown else own
