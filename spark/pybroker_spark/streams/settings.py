"""The settings of an application on Spark: Kafka's keys, less those that only `KafkaStreams` can honour.

Owns the list of refused keys with their reasons, and the conversion of client settings to options of the data source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pybroker.client.settings import FetcherSettings, ProducerSettings
from pybroker.streams.application.settings import EMIT_INTERVAL, ApplicationSettings, parse_settings
from pybroker.streams.errors import StreamsError

_STATE: Final = "the state is in Spark's checkpoint"
_SPARK: Final = "Spark starts the tasks"
_CONSUMER: Final = "the data source reads without a consumer"
REFUSED: Final[Mapping[str, str]] = {
    "application.server": "stores cannot be queried",
    "buffered.records.per.partition": "maxOffsetsPerTrigger bounds a batch",
    "client.id": _SPARK,
    "commit.interval.ms": "each micro-batch is a commit: set the trigger",
    "default.dsl.store": _STATE,
    "group.protocol": "a query joins no group",
    "max.task.idle.ms": "a batch has all records of its offsets at its start",
    "num.stream.threads": _SPARK,
    "poll.ms": _CONSUMER,
    "state.cleanup.delay.ms": _STATE,
    "state.dir": _STATE,
    "task.timeout.ms": _SPARK,
    "windowstore.changelog.additional.retention.ms": "stores have no changelog topics",
    EMIT_INTERVAL: "final results are emitted without a delay",
}
"""Keys that have no effect on Spark, with the reason."""
_REFUSED_PREFIXES: Final = ("main.consumer.", "restore.consumer.", "global.consumer.")
_OF_THE_SOURCE: Final = frozenset(
    {"allow.auto.create.topics", "auto.offset.reset", "enable.auto.commit", "group.id", "group.protocol",
     "isolation.level", "max.poll.records"}
)  # fmt: skip
"""Keys of a consumer that the data source sets itself, or does not have."""


def parse(given: Mapping[str, Any]) -> ApplicationSettings:
    """Return the settings of an application.

    Raises:
        StreamsError: a key is unknown, missing or invalid, or it has no effect on Spark.
        SettingError: a client refuses a value.
    """
    for key, value in given.items():
        reason = REFUSED.get(key) or (_CONSUMER if key.startswith(_REFUSED_PREFIXES) else None)
        if reason is not None:
            raise StreamsError(f"invalid value {value!r} for '{key}': expected no value on Spark: {reason}")
    guarantee = given.get("processing.guarantee", "exactly_once_v2")
    if guarantee != "exactly_once_v2":
        raise StreamsError(
            f"invalid value {guarantee!r} for 'processing.guarantee': expected exactly_once_v2 or no value: a query "
            "writes exactly once"
        )
    # A task lives for one batch, so a wait between two emissions of final results would begin again with each batch.
    own = {"processing.guarantee": guarantee, "default.dsl.store": "in_memory", EMIT_INTERVAL: 0}
    return parse_settings({**given, **own})


def read_options(settings: ApplicationSettings) -> dict[str, str]:
    """Return the options of the connection for a read. Only committed records are read."""
    known = {key: value for key, value in settings.clients.main.items() if key in FetcherSettings.keys}
    own = {key: value for key, value in known.items() if key not in _OF_THE_SOURCE}
    return _options(settings, {**own, "isolation.level": "read_committed"})


def write_options(settings: ApplicationSettings) -> dict[str, str]:
    """Return the options of the connection for a write."""
    known = {key: value for key, value in settings.clients.producer.items() if key in ProducerSettings.keys}
    own = {key: value for key, value in known.items() if key not in ("transaction.timeout.ms", "delivery.timeout.ms")}
    return _options(settings, own)


def _options(settings: ApplicationSettings, properties: Mapping[str, Any]) -> dict[str, str]:
    texts = {f"kafka.{key}": _text(value) for key, value in properties.items()}
    return {**texts, "kafka.bootstrap.servers": settings.bootstrap_servers}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
