"""TopicConfig: the settings of one topic, its overrides over the broker's values.

Owns the topic keys and their broker synonyms (KIP-226). Must not know where overrides are stored, or how a log uses
the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError, UnknownKeyError
from pybroker.config.key import Key, boolean, long, throttled_replicas
from pybroker.config.settings import Settings, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

# Synonyms of a broker key: the first given one applies; DescribeConfigs lists all of them.
_CHAINS = {
    "log.roll.ms": ("log.roll.ms", "log.roll.hours"),
    "log.roll.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
# The BrokerConfig property with the effective value of such a chain.
_RESOLVED = {
    "log.roll.ms": "roll_ms",
    "log.roll.jitter.ms": "roll_jitter_ms",
    "log.retention.ms": "retention_ms",
    "log.flush.interval.ms": "flush_interval_ms",
}


def _of(broker_key: Key[T]) -> Key[T]:
    """Declare a topic key with the type, range, documentation and default of a broker key."""
    key = broker_key.redeclared()
    _BROKER_KEY[key] = broker_key
    return key


def _resolved(broker_key: Key[int | None], *, at_least: int) -> Key[int]:
    """Declare a topic key whose default is a chain of broker keys, so that it always has a value."""
    key = long(0, broker_key.doc, at_least=at_least, acts=broker_key.acts, dynamic=True)
    _BROKER_KEY[key] = broker_key
    return key


_BROKER_KEY: dict[Key[Any], Key[Any]] = {}


class TopicConfig(Settings):
    """The complete settings of one topic: its own values, and the broker's for all others."""

    broker: BrokerConfig

    cleanup_policy = _of(BrokerConfig.log_cleanup_policy)
    compression_gzip_level = _of(BrokerConfig.compression_gzip_level)
    compression_lz4_level = _of(BrokerConfig.compression_lz4_level)
    compression_type = _of(BrokerConfig.compression_type)
    compression_zstd_level = _of(BrokerConfig.compression_zstd_level)
    delete_retention_ms = _of(BrokerConfig.log_cleaner_delete_retention_ms)
    file_delete_delay_ms = _of(BrokerConfig.log_segment_delete_delay_ms)
    flush = _of(BrokerConfig.flush)
    flush_messages = _of(BrokerConfig.log_flush_interval_messages)
    flush_ms = _resolved(BrokerConfig.log_flush_interval_ms, at_least=0)
    follower_replication_throttled_replicas = throttled_replicas(
        "Replicas that are throttled when they fetch as followers, as partition:broker pairs or *."
    )
    index_interval_bytes = _of(BrokerConfig.log_index_interval_bytes)
    leader_replication_throttled_replicas = throttled_replicas(
        "Replicas that are throttled when they serve followers, as partition:broker pairs or *."
    )
    local_retention_bytes = _of(BrokerConfig.log_local_retention_bytes)
    local_retention_ms = _of(BrokerConfig.log_local_retention_ms)
    max_compaction_lag_ms = _of(BrokerConfig.log_cleaner_max_compaction_lag_ms)
    max_message_bytes = _of(BrokerConfig.message_max_bytes)
    message_timestamp_after_max_ms = _of(BrokerConfig.log_message_timestamp_after_max_ms)
    message_timestamp_before_max_ms = _of(BrokerConfig.log_message_timestamp_before_max_ms)
    message_timestamp_type = _of(BrokerConfig.log_message_timestamp_type)
    min_cleanable_dirty_ratio = _of(BrokerConfig.log_cleaner_min_cleanable_ratio)
    min_compaction_lag_ms = _of(BrokerConfig.log_cleaner_min_compaction_lag_ms)
    min_insync_replicas = _of(BrokerConfig.min_insync_replicas)
    preallocate = _of(BrokerConfig.log_preallocate)
    remote_log_copy_disable = boolean(False, "Whether copying to tiered storage is disabled.", dynamic=True, acts=False)
    remote_log_delete_on_disable = boolean(
        False, "Whether tiered data is deleted when tiered storage is disabled.", dynamic=True, acts=False
    )
    remote_storage_enable = boolean(
        False, "Whether the topic uses tiered storage; only false is accepted.", dynamic=True, acts=False
    )
    retention_bytes = _of(BrokerConfig.log_retention_bytes)
    retention_ms = _resolved(BrokerConfig.log_retention_ms, at_least=-1)
    segment_bytes = _of(BrokerConfig.log_segment_bytes)
    segment_index_bytes = _of(BrokerConfig.log_index_size_max_bytes)
    segment_jitter_ms = _resolved(BrokerConfig.log_roll_jitter_ms, at_least=0)
    segment_ms = _resolved(BrokerConfig.log_roll_ms, at_least=1)
    unclean_leader_election_enable = _of(BrokerConfig.unclean_leader_election_enable)

    @classmethod
    def stored(cls, overrides: Mapping[str, str], broker: BrokerConfig) -> tuple[TopicConfig, tuple[str, ...]]:
        """Return the settings of an existing topic, and the errors of its own settings that are skipped.

        A value that an older version accepted, or that conflicts with the broker's settings, must not make the topic
        unavailable or affect its other settings. Never raises: where the broker's values conflict, they apply.
        """
        kept = dict(overrides)
        faults: list[str] = []
        while True:
            try:
                return cls(kept, broker), tuple(faults)
            except ConfigError as error:
                faults.append(str(error))
                if not kept:
                    return cls._inherited(broker), tuple(faults)
                if kept.pop(error.name, None) is None:
                    kept.clear()

    @classmethod
    def _inherited(cls, broker: BrokerConfig) -> TopicConfig:
        """Return the broker's settings without any validation."""
        made = cls.__new__(cls)
        made.__dict__["broker"] = broker
        Settings.__init__(made, {})
        return made

    def __init__(self, overrides: Mapping[str, str], broker: BrokerConfig) -> None:
        """Parse and validate a topic's own texts. Raises ConfigError for an invalid one and for an unknown key."""
        self.__dict__["broker"] = broker
        super().__init__(overrides)
        for name in self.unknown:
            raise UnknownKeyError("topic", name, suggestion(name, self.keys))
        if self.remote_storage_enable:
            raise ConfigError(
                "remote.storage.enable",
                "true",
                "false: Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage.",
            )
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConfigError(
                "min.compaction.lag.ms",
                self.min_compaction_lag_ms,
                f"at most max.compaction.lag.ms, which is {self.max_compaction_lag_ms}",
            )

    def default_of(self, key: Key[Any]) -> Any:
        """Return the broker's value of a key without a value of the topic."""
        broker_key = _BROKER_KEY.get(key)
        if broker_key is None:
            return key.default
        return getattr(self.broker, _RESOLVED.get(broker_key.name, broker_key.attribute))


def broker_synonyms(topic_key: str) -> tuple[Key[Any], ...]:
    """Return the broker synonyms of a topic key, in order of precedence; none for a topic-only key."""
    broker_key = _BROKER_KEY.get(TopicConfig.keys[topic_key])
    if broker_key is None:
        return ()
    return broker_chain(broker_key.name)


def broker_suggestion(unknown: str) -> str | None:
    """Return the broker key for a topic key's name, else the nearest one, None where none is near."""
    if unknown in TopicConfig.keys:
        for key in broker_synonyms(unknown):
            return key.name
    return suggestion(unknown, BrokerConfig.keys)


def broker_chain(broker_key: str) -> tuple[Key[Any], ...]:
    """Return a broker key with those that apply when it is absent."""
    return tuple(BrokerConfig.keys[name] for name in _CHAINS.get(broker_key, (broker_key,)))


def topic_fault(overrides: Mapping[str, str], broker: BrokerConfig) -> str | None:
    """Return the error of a topic's settings, None where they are valid."""
    try:
        TopicConfig(overrides, broker)
    except ConfigError as error:
        return str(error)
    return None
