"""The security of a node's connections to controllers and to other brokers.

Owns the update of both after changed settings. If both are plaintext, no client module is imported. Must not know the
connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.client.security.renewed import RenewedSecurity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.client.security.renewed import RenewedSecurity
    from pybroker.config.broker import BrokerConfig


class Outbound:
    """The security of outbound connections of one run of a node. Used from one event loop."""

    def __init__(self, config: BrokerConfig) -> None:
        """Read the key stores that the settings name. Raises ConfigError."""
        self.controllers: RenewedSecurity | None = None
        """None for plaintext."""
        self.brokers: RenewedSecurity | None = None
        """None for plaintext, and in a single node or one without the broker role."""
        if not config.is_single:
            self.controllers = _read("connections to controllers", config.client_of_controllers())
            self.brokers = _read("connections to other brokers", config.client_of_brokers() if config.is_broker else {})

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed settings to new connections."""
        if self.controllers is not None:
            self.controllers.reconfigure(config.client_of_controllers())
        if self.brokers is not None:
            self.brokers.reconfigure(config.client_of_brokers())


def _read(what: str, properties: Mapping[str, str]) -> RenewedSecurity | None:
    if properties.get("security.protocol", "PLAINTEXT") == "PLAINTEXT":
        return None
    return RenewedSecurity(what, properties)
