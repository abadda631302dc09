"""The settings of a streams application, with Kafka's names and defaults (`StreamsConfig`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pybroker.streams import serdes
from pybroker.streams.errors import StreamsError
from pybroker.streams.serdes import DefaultSerdes, Serde
from pybroker.streams.timestamps import TimestampExtractor, fail_on_invalid_timestamp

NAMED_SERDES: dict[str, Serde[Any]] = {
    "string": serdes.STRING,
    "bytes": serdes.BYTES,
    "int32": serdes.INT32,
    "int64": serdes.INT64,
    "float64": serdes.FLOAT64,
    "json": serdes.JSON,
}
UNUSED_BY_THE_DRIVER = frozenset(
    {"bootstrap.servers", "client.id", "commit.interval.ms", "num.stream.threads", "topology.optimization"}
)
"""Settings of an application that the test driver accepts, so that a test can use the application's own settings."""
SETTINGS = (
    "application.id",
    "default.dsl.store",
    "default.key.serde",
    "default.timestamp.extractor",
    "default.value.serde",
    "max.task.idle.ms",
    "processing.guarantee",
    "state.dir",
    "statestore.cache.max.bytes",
)
STORES = {"rocksDB": True, "in_memory": False}
"""The values of `default.dsl.store`, with whether stores are persistent."""
GUARANTEES = ("at_least_once", "exactly_once_v2")


class StreamsConfig(msgspec.Struct, frozen=True):
    """The settings that running a topology needs."""

    application_id: str
    """`application.id`: the prefix of internal topics, and the id of the group."""
    default_serdes: DefaultSerdes
    """`default.key.serde` and `default.value.serde`. None by default, as in Kafka."""
    default_timestamp_extractor: TimestampExtractor
    """`default.timestamp.extractor`: fails on a negative timestamp by default."""
    cache_max_bytes: int
    """`statestore.cache.max.bytes`: the memory of all caches, 10 MiB by default. Zero disables caching."""
    max_task_idle_ms: int
    """`max.task.idle.ms`: how long a task waits for a record of each of its partitions. Zero by default."""
    emit_interval_ms: int
    """The least time between two emissions of final results, in milliseconds."""
    persistent_stores: bool = True
    """`default.dsl.store`: whether stores are in RocksDB (`rocksDB`, the default) or in memory (`in_memory`)."""
    state_dir: Path | None = None
    """`state.dir`: the directory of persistent stores. The test driver keeps stores in memory without it."""


def parse_config(given: Mapping[str, Any], application_id: str, emit_interval_ms: int) -> StreamsConfig:
    """Return the settings of a test driver.

    Args:
        given: Kafka's keys. Values of serdes are `Serde` objects or names such as `string` and `int64`.
        application_id: the id if `application.id` is not given.
        emit_interval_ms: the least time between two emissions of final results, in milliseconds.

    Raises:
        StreamsError: a key is unknown or a value is invalid.
    """
    rest = {key: value for key, value in given.items() if key not in UNUSED_BY_THE_DRIVER}
    guarantee = rest.pop("processing.guarantee", GUARANTEES[0])
    if guarantee not in GUARANTEES:
        raise _invalid("processing.guarantee", guarantee, " or ".join(GUARANTEES))
    config = StreamsConfig(
        application_id=_text(rest.pop("application.id", application_id)),
        default_serdes=DefaultSerdes(
            _serde("default.key.serde", rest.pop("default.key.serde", None)),
            _serde("default.value.serde", rest.pop("default.value.serde", None)),
        ),
        default_timestamp_extractor=rest.pop("default.timestamp.extractor", fail_on_invalid_timestamp),
        cache_max_bytes=_number("statestore.cache.max.bytes", rest.pop("statestore.cache.max.bytes", 10 << 20), 0),
        max_task_idle_ms=_number("max.task.idle.ms", rest.pop("max.task.idle.ms", 0), -1),
        emit_interval_ms=emit_interval_ms,
        persistent_stores=_store(rest.pop("default.dsl.store", "rocksDB")),
        state_dir=_directory(rest.pop("state.dir", None)),
    )
    if rest:
        known = ", ".join(sorted([*SETTINGS, *UNUSED_BY_THE_DRIVER]))
        raise StreamsError(f"unknown settings {', '.join(sorted(rest))}: expected some of {known}")
    if not callable(config.default_timestamp_extractor):
        raise _invalid("default.timestamp.extractor", config.default_timestamp_extractor, "a function (record, time)")
    return config


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _invalid("application.id", value, "a str that is not empty")
    return value


def _store(value: Any) -> bool:
    persistent = STORES.get(value) if isinstance(value, str) else None
    if persistent is None:
        raise _invalid("default.dsl.store", value, " or ".join(STORES))
    return persistent


def _directory(value: Any) -> Path | None:
    if value is None or isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value:
        raise _invalid("state.dir", value, "the path of a directory")
    return Path(value)


def _number(key: str, value: Any, least: int) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = least - 1
    if number < least:
        raise _invalid(key, value, f"an integer >= {least}")
    return number


def _serde(key: str, value: Any) -> Serde[Any] | None:
    if value is None or isinstance(value, Serde):
        return value
    named = NAMED_SERDES.get(value) if isinstance(value, str) else None
    if named is None:
        raise _invalid(key, value, f"a Serde or one of {', '.join(sorted(NAMED_SERDES))}")
    return named


def _invalid(key: str, value: Any, expected: str) -> StreamsError:
    return StreamsError(f"invalid value {value!r} for '{key}': expected {expected}")
