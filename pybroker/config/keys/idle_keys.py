"""Keys of Kafka's features that this broker does not have: tiered storage, share groups, plugins.

Accepts Kafka's dynamic keys where they have no effect, and rejects values that would need such a feature. Must not
know their use.
"""

from __future__ import annotations

from pybroker.config.key import LONG_MAX, boolean, class_names, integer, long, no_items
from pybroker.config.settings import Settings

_BUFFER = 2**19
_LONGEST_ASSIGNMENT_INTERVAL_MS = 15_000


class IdleKeys(Settings):
    """Dynamic keys without effect."""

    config_providers = no_items("Names of config providers. None can be loaded, so only an empty list is accepted.")
    cordoned_log_dirs = no_items(
        "Log directories that receive no new partitions (KIP-1066). This version does not support them, so only an "
        "empty list is accepted."
    )
    metric_reporters = class_names(
        ("org.apache.kafka.common.metrics.JmxReporter",),
        "Classes that report metrics. None can be loaded, so only the default or an empty list is accepted.",
    )
    follower_fetch_last_tiered_offset_enable = boolean(
        False, "Whether an empty follower starts to fetch after the last tiered offset.", acts=False, dynamic=True
    )
    group_coordinator_cached_buffer_max_bytes = integer(
        2**20 + 12,
        "Maximum size in bytes of the write buffer that a group coordinator keeps.",
        at_least=_BUFFER,
        acts=False,
        dynamic=True,
    )
    share_coordinator_cached_buffer_max_bytes = integer(
        2**20 + 12,
        "Maximum size in bytes of the write buffer that a share coordinator keeps.",
        at_least=_BUFFER,
        acts=False,
        dynamic=True,
    )
    group_share_assignment_interval_ms = integer(
        1000,
        "Minimum time in ms between two assignments of a share group.",
        at_least=0,
        at_most=_LONGEST_ASSIGNMENT_INTERVAL_MS,
        acts=False,
        dynamic=True,
    )
    remote_fetch_max_wait_ms = integer(
        500, "Maximum wait in ms of a fetch from tiered storage.", at_least=1, acts=False, dynamic=True
    )
    remote_list_offsets_request_timeout_ms = long(
        30_000, "Maximum wait in ms of a ListOffsets request for tiered data.", at_least=1, acts=False, dynamic=True
    )
    remote_log_index_file_cache_total_size_bytes = long(
        2**30, "Maximum bytes of tiered indexes that are cached on disk.", at_least=1, acts=False, dynamic=True
    )
    remote_log_manager_copier_thread_pool_size = integer(
        10, "Number of threads that copy segments to tiered storage.", at_least=1, acts=False, dynamic=True
    )
    remote_log_manager_copy_max_bytes_per_second = long(
        LONG_MAX, "Maximum bytes per second copied to tiered storage.", at_least=1, acts=False, dynamic=True
    )
    remote_log_manager_expiration_thread_pool_size = integer(
        10, "Number of threads that delete segments from tiered storage.", at_least=1, acts=False, dynamic=True
    )
    remote_log_manager_fetch_max_bytes_per_second = long(
        LONG_MAX, "Maximum bytes per second read from tiered storage.", at_least=1, acts=False, dynamic=True
    )
    remote_log_manager_follower_thread_pool_size = integer(
        2, "Number of threads with which followers query tiered storage.", at_least=1, acts=False, dynamic=True
    )
    remote_log_reader_threads = integer(
        10, "Number of threads that read from tiered storage.", at_least=1, acts=False, dynamic=True
    )
