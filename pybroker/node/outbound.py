"""What a node's connections to other nodes are secured with: those to controllers, and those to brokers.

Owns that nothing of a client is imported where both are plaintext, and that changed settings reach both. Must not know
who connects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.client.security.renewed import RenewedSecurity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.client.security.renewed import RenewedSecurity
    from pybroker.config.broker import BrokerConfig


class Outbound:
    """One run of a node. Used from one event loop."""

    def __init__(self, config: BrokerConfig) -> None:
        """Read what the settings name; raises ConfigError."""
        self.controllers: RenewedSecurity | None = None
        """None for plaintext."""
        self.brokers: RenewedSecurity | None = None
        """None for plaintext, and where there are no other brokers, or this node is none."""
        if not config.is_single:
            self.controllers = _read("connections to controllers", config.client_of_controllers())
            self.brokers = _read("connections to other brokers", config.client_of_brokers() if config.is_broker else {})

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take changed settings, for the connections that are made from now on."""
        if self.controllers is not None:
            self.controllers.reconfigure(config.client_of_controllers())
        if self.brokers is not None:
            self.brokers.reconfigure(config.client_of_brokers())


def _read(what: str, properties: Mapping[str, str]) -> RenewedSecurity | None:
    if properties.get("security.protocol", "PLAINTEXT") == "PLAINTEXT":
        return None
    return RenewedSecurity(what, properties)
