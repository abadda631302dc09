"""Keys of groups: the offsets topic, their offsets, their members' timeouts."""

from __future__ import annotations

from pybroker.config.key import integer, long, short
from pybroker.config.settings import Settings

_DAY_MINUTES = 1440


class GroupKeys(Settings):
    """The group coordinator."""

    offsets_topic_num_partitions = integer(
        50,
        "Number of partitions of __consumer_offsets when it is created. A group is assigned to a partition by the hash "
        "of its id.",
        at_least=1,
    )
    offsets_topic_replication_factor = short(
        3,
        "Replication factor of __consumer_offsets when it is created. It is lowered to the number of brokers if there "
        "are fewer.",
        at_least=1,
    )
    offsets_topic_segment_bytes = integer(
        100 * 1024**2,
        "Segment size in bytes of __consumer_offsets; small, for early compaction. Below the minimum of segment.bytes "
        "(1048576), the broker starts, as in Kafka, but cannot create the topic and logs a warning.",
        at_least=1,
    )
    offsets_topic_compression_codec = integer(
        0,
        "Compression codec of the batches in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        at_least=0,
        at_most=4,
    )
    offsets_load_buffer_size = integer(
        5 * 1024**2, "Maximum number of bytes of __consumer_offsets in one read while a coordinator loads.", at_least=1
    )
    offsets_commit_timeout_ms = integer(
        5000, "Maximum wait in ms until the records that a group's request writes are committed.", at_least=1
    )
    offsets_retention_minutes = integer(
        7 * _DAY_MINUTES,
        "Time in minutes for which the offsets of a group are kept after it has lost all members.",
        at_least=1,
    )
    offsets_retention_check_interval_ms = long(600_000, "Time in ms between checks for expired offsets.", at_least=1)
    offset_metadata_max_bytes = integer(
        4096, "Maximum length of the metadata of a committed offset, in characters as in Kafka."
    )
    group_initial_rebalance_delay_ms = integer(
        3000, "Time in ms to wait for more members after the first one has joined an empty group."
    )
    group_min_session_timeout_ms = integer(6000, "Minimum session timeout in ms that a member can request.")
    group_max_session_timeout_ms = integer(1_800_000, "Maximum session timeout in ms that a member can request.")
    group_max_size = integer(2**31 - 1, "Maximum number of members of a group of the classic protocol.", at_least=1)
