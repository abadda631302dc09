"""Whom a listener is for: clients and brokers, or controllers.

Owns the two roles; an API says by them where it is served, as Kafka's schemas do by `listeners`. Must not know which
listener has which role: that is configuration.
"""

from __future__ import annotations

from enum import Flag, auto


class ListenerRole(Flag):
    """A role of listeners, or a set of them."""

    BROKER = auto()
    """A listener of a node with the broker role: clients, and other brokers that fetch."""
    CONTROLLER = auto()
    """A listener that controller.listener.names names: controllers, and brokers that ask them."""
    BOTH = BROKER | CONTROLLER
