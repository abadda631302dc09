"""GroupConfig: the settings of one group, its overrides over the broker's values.

Owns the group keys and the bounds that a broker sets for them. Must not know where overrides are stored, or their
users. Kafka's keys of share groups are unknown here, as are those groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError, UnknownKeyError
from pybroker.config.key import optional_string
from pybroker.config.settings import Settings, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.config.key import Key

_PREFIX = "group."
_SYNONYMS = {"streams.assignor.name": "group.streams.assignors"}
"""The broker keys of group keys whose names differ in more than the prefix."""
_BOUNDS = {
    "streams.num.standby.replicas": "group.streams.max.standby.replicas",
    "streams.num.warmup.replicas": "group.streams.max.warmup.replicas",
}
"""The broker keys of maximums whose names are not derived from the group key."""


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
    streams_acceptable_recovery_lag = BrokerConfig.group_streams_acceptable_recovery_lag.redeclared()
    streams_assignment_interval_ms = BrokerConfig.group_streams_assignment_interval_ms.redeclared()
    streams_assignor_name = optional_string(
        "Assignor of the streams group. The default is the first of the broker's list.",
        one_of=("sticky",),
        dynamic=True,
    )
    streams_heartbeat_interval_ms = BrokerConfig.group_streams_heartbeat_interval_ms.redeclared()
    streams_initial_rebalance_delay_ms = BrokerConfig.group_streams_initial_rebalance_delay_ms.redeclared()
    streams_num_standby_replicas = BrokerConfig.group_streams_num_standby_replicas.redeclared()
    streams_num_warmup_replicas = BrokerConfig.group_streams_num_warmup_replicas.redeclared()
    streams_rack_aware_assignment_tags = BrokerConfig.group_streams_rack_aware_assignment_tags.redeclared()
    streams_session_timeout_ms = BrokerConfig.group_streams_session_timeout_ms.redeclared()
    streams_task_offset_interval_ms = BrokerConfig.group_streams_task_offset_interval_ms.redeclared()

    def __init__(self, overrides: Mapping[str, str], broker: BrokerConfig) -> None:
        """Parse a group's own texts. Raises ConfigError for an invalid number, and for an unknown key."""
        self.__dict__["broker"] = broker
        super().__init__(overrides)
        for name in self.unknown:
            raise UnknownKeyError("group", name, suggestion(name, self.keys))

    def default_of(self, key: Key[Any]) -> Any:
        """Return the broker's value of a key without a value of the group."""
        value = getattr(self.broker, group_synonym(key.name).attribute)
        return value[0] if key.name in _SYNONYMS else value


def group_synonym(group_key: str) -> Key[Any]:
    """Return the broker key that is the default of a group key."""
    return BrokerConfig.keys[_SYNONYMS.get(group_key, _PREFIX + group_key)]


def group_bounds(group_key: str, broker: BrokerConfig) -> tuple[Bound | None, Bound | None]:
    """Return the minimum and maximum of a group's value from the broker's settings; None where there is none."""
    kind, rest = group_key.split(".", 1)
    least = BrokerConfig.keys.get(f"{_PREFIX}{kind}.min.{rest}")
    most = BrokerConfig.keys.get(_BOUNDS.get(group_key, f"{_PREFIX}{kind}.max.{rest}"))
    low, high = (
        None if bound is None else Bound(bound.name, getattr(broker, bound.attribute)) for bound in (least, most)
    )
    return low, high


def group_fault(overrides: Mapping[str, str], broker: BrokerConfig) -> str | None:
    """Return the error of the complete configs of a group, with Kafka's message; None where they are valid."""
    try:
        config = GroupConfig(overrides, broker)
    except ConfigError as error:
        return str(error)
    for name in config.given:
        value = getattr(config, config.keys[name].attribute)
        least, most = group_bounds(name, broker)
        if least is not None and value < least.value:
            return f"{name} must be greater than or equal to {least.name}"
        if most is not None and value > most.value:
            return f"{name} must be less than or equal to {most.name}"
    if config.consumer_session_timeout_ms <= config.consumer_heartbeat_interval_ms:
        return "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    if config.streams_session_timeout_ms <= config.streams_heartbeat_interval_ms:
        return "streams.session.timeout.ms must be greater than streams.heartbeat.interval.ms"
    return None
