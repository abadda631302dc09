"""The roles of listeners: for clients and brokers, or for controllers.

Owns the two roles. An API declares by them where it is served, as Kafka's schemas do by `listeners`. Must not know the
configured listeners.
"""

from __future__ import annotations

from enum import Flag, auto


class ListenerRole(Flag):
    """A role of listeners, or a set of roles."""

    BROKER = auto()
    """A broker listener: for clients, and for fetches of other brokers."""
    CONTROLLER = auto()
    """A listener in controller.listener.names: for controllers, and for brokers' requests to them."""
    BOTH = BROKER | CONTROLLER
