"""GroupConfig: the settings of one group, its overrides over the broker's values.

Owns the group keys and the bounds that a broker sets for them. Must not know where overrides are stored, or their
users. Kafka's keys of share and streams groups are unknown here, as are those groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError, UnknownKeyError
from pybroker.config.settings import Settings, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.config.key import Key

_PREFIX = "group."


class Bound(msgspec.Struct, frozen=True):
    """A broker key that defines the minimum or the maximum of a group's value."""

    name: str
    value: int


class GroupConfig(Settings):
    """The complete settings of one group: its own values, and the broker's for all others."""

    broker: BrokerConfig

    consumer_assignment_interval_ms = BrokerConfig.group_consumer_assignment_interval_ms.redeclared()
    consumer_heartbeat_interval_ms = BrokerConfig.group_consumer_heartbeat_interval_ms.redeclared()
    consumer_session_timeout_ms = BrokerConfig.group_consumer_session_timeout_ms.redeclared()

    def __init__(self, overrides: Mapping[str, str], broker: BrokerConfig) -> None:
        """Parse a group's own texts. Raises ConfigError for an invalid number, and for an unknown key."""
        self.__dict__["broker"] = broker
        super().__init__(overrides)
        for name in self.unknown:
            raise UnknownKeyError("group", name, suggestion(name, self.keys))

    def default_of(self, key: Key[Any]) -> Any:
        """Return the broker's value of a key without a value of the group."""
        return getattr(self.broker, group_synonym(key.name).attribute)


def group_synonym(group_key: str) -> Key[Any]:
    """Return the broker key that is the default of a group key."""
    return BrokerConfig.keys[_PREFIX + group_key]


def group_bounds(group_key: str, broker: BrokerConfig) -> tuple[Bound, Bound]:
    """Return the minimum and maximum of a group's value from the broker's settings."""
    kind, rest = group_key.split(".", 1)
    least, most = (BrokerConfig.keys[f"{_PREFIX}{kind}.{end}.{rest}"] for end in ("min", "max"))
    return Bound(least.name, getattr(broker, least.attribute)), Bound(most.name, getattr(broker, most.attribute))


def group_fault(overrides: Mapping[str, str], broker: BrokerConfig) -> str | None:
    """Return the error of the complete configs of a group, with Kafka's message; None where they are valid."""
    try:
        config = GroupConfig(overrides, broker)
    except ConfigError as error:
        return str(error)
    for name in config.given:
        value = getattr(config, config.keys[name].attribute)
        least, most = group_bounds(name, broker)
        if value < least.value:
            return f"{name} must be greater than or equal to {least.name}"
        if value > most.value:
            return f"{name} must be less than or equal to {most.name}"
    if config.consumer_session_timeout_ms <= config.consumer_heartbeat_interval_ms:
        return "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    return None
