"""A topic's configuration as settings of the native log.

Owns the mapping from Kafka's topic keys to the fields of `LogConfig`. Must not have defaults of its own, with one
exception that is no setting: the maximum size of a decompressed batch.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, cast

from pybroker.storage.native import LogConfig

if TYPE_CHECKING:
    from typing import Literal

    from pybroker.config.topic import TopicConfig

# Maximum size of a decompressed batch: without it 1 MiB of compressed zeros could take a GiB of memory.
_MAX_DECOMPRESSED_BYTES = 128 * 1024**2


def build_log_config(topic: TopicConfig) -> LogConfig:
    """Return the native settings for one log of a topic; draws the random jitter of the segments' age."""
    return LogConfig(
        segment_bytes=topic.segment_bytes,
        segment_ms=_segment_ms(topic),
        segment_jitter_ms=_jitter(min(topic.segment_jitter_ms, _segment_ms(topic))),
        segment_index_bytes=topic.segment_index_bytes,
        index_interval_bytes=topic.index_interval_bytes,
        max_message_bytes=topic.max_message_bytes,
        compression_type=topic.compression_type,
        compression_level=_level(topic),
        timestamp_type=cast("Literal['CreateTime', 'LogAppendTime']", topic.message_timestamp_type),
        timestamp_before_max_ms=topic.message_timestamp_before_max_ms,
        timestamp_after_max_ms=topic.message_timestamp_after_max_ms,
        require_keys="compact" in topic.cleanup_policy,
        preallocate=topic.preallocate,
        delete_retention_ms=topic.delete_retention_ms,
        flush_messages=topic.flush_messages,
        flush_ms=topic.flush_ms,
        flush_group=topic.flush == "group",
        producer_id_expiration_ms=topic.broker.producer_id_expiration_ms,
        max_decompressed_bytes=_MAX_DECOMPRESSED_BYTES,
        file_delete_delay_ms=topic.file_delete_delay_ms,
    )


def _segment_ms(topic: TopicConfig) -> int:
    """Return the age at which a segment is rolled: at most max.compaction.lag.ms for a compacted topic."""
    return min(topic.segment_ms, topic.max_compaction_lag_ms) if "compact" in topic.cleanup_policy else topic.segment_ms


def _level(topic: TopicConfig) -> int | None:
    """Return the level of the topic's codec; None for a codec without levels, or the producer's codec."""
    levels = {
        "gzip": topic.compression_gzip_level,
        "lz4": topic.compression_lz4_level,
        "zstd": topic.compression_zstd_level,
    }
    return levels.get(topic.compression_type)


def _jitter(bound_ms: int) -> int:
    """Return a random number of ms below the bound."""
    if not bound_ms:
        return 0

    return random.randrange(bound_ms)
