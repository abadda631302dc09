"""Dynamic changes of a broker's listeners (KIP-226).

Owns the rules beyond those of a start, with Kafka's messages where it has some. Must not know sockets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig
    from pybroker.config.endpoint import Listener


def listener_fault(current: BrokerConfig, made: BrokerConfig) -> str | None:
    """Return why a broker with the settings `current` cannot change to the listeners of `made`, None where it can."""
    if current.endpoints == made.endpoints:
        return None
    before, after = _by_name(current), _by_name(made)
    between = current.inter_broker_listener
    if between not in after:
        return (
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options "
            f"based on currently configured listeners are {','.join(after)}"
        )
    for name in before.keys() & after.keys():
        if before[name].protocol != after[name].protocol:
            return f"Security protocol cannot be updated for existing listener ListenerName({name})"
        if before[name] != after[name]:
            return (
                f"Configs cannot be updated dynamically for existing listener ListenerName({name}), restart broker or "
                "create a new listener for update"
            )
    querying = [one for name, one in after.items() if name not in before and one.authenticates]
    if querying and not any(one.authenticates for one in before.values()):
        expected = "a listener without SASL: the first listener that authenticates clients needs a restart"
        return str(ConfigError("listeners", querying[0].endpoint, expected))
    return None


def _by_name(config: BrokerConfig) -> dict[str, Listener]:
    return {one.endpoint.name: one for one in config.broker_endpoints}
