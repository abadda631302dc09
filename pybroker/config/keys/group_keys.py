"""Keys of groups: the offsets topic, their offsets, their members' timeouts."""

from __future__ import annotations

from pybroker.config.key import integer, long, short
from pybroker.config.settings import Settings

_DAY_MINUTES = 1440


class GroupKeys(Settings):
    """The group coordinator."""

    offsets_topic_num_partitions = integer(
        50,
        "Partitions of __consumer_offsets, when it is created. Groups are dealt to them by the hash of their id.",
        at_least=1,
    )
    offsets_topic_replication_factor = short(
        3,
        "Replicas of __consumer_offsets, when it is created; as many as there are brokers, where there are fewer.",
        at_least=1,
    )
    offsets_topic_segment_bytes = integer(
        100 * 1024**2,
        "Segment size in bytes of __consumer_offsets: small, so that it is compacted soon. The topic cannot be created "
        "with less than segment.bytes may be (1048576); the broker starts, as Kafka's does, and warns when it tries.",
        at_least=1,
    )
    offsets_topic_compression_codec = integer(
        0,
        "Codec of the batches in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        at_least=0,
        at_most=4,
    )
    offsets_load_buffer_size = integer(
        5 * 1024**2, "Most bytes of __consumer_offsets read at once while a coordinator is loaded.", at_least=1
    )
    offsets_commit_timeout_ms = integer(
        5000, "Longest wait in ms until what a group's request writes is committed.", at_least=1
    )
    offsets_retention_minutes = integer(
        7 * _DAY_MINUTES, "Minutes for which a group's offsets outlive its members.", at_least=1
    )
    offsets_retention_check_interval_ms = long(600_000, "Time in ms between checks for expired offsets.", at_least=1)
    offset_metadata_max_bytes = integer(4096, "Largest text kept with a committed offset, in characters as in Kafka.")
    group_initial_rebalance_delay_ms = integer(3000, "Wait in ms for more members when the first joins an empty group.")
    group_min_session_timeout_ms = integer(6000, "Shortest session timeout in ms that a member may ask for.")
    group_max_session_timeout_ms = integer(1_800_000, "Longest session timeout in ms that a member may ask for.")
    group_max_size = integer(2**31 - 1, "Most members of a group of the classic protocol.", at_least=1)
