"""Keys of logs: directories, segments, retention, accepted records. Most have a topic key of the same meaning."""

from __future__ import annotations

from pybroker.config.key import (
    LONG_MAX,
    boolean,
    double,
    integer,
    listing,
    long,
    optional_integer,
    optional_listing,
    optional_long,
    string,
)
from pybroker.config.settings import Settings

_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_HOUR_MS = 3_600_000


class LogKeys(Settings):
    """Log directories and the defaults that topics inherit."""

    log_dir = listing(
        ("/tmp/pybroker-logs",),
        "Log directory, if log.dirs is not set. The default differs from Kafka's /tmp/kafka-logs, so that a trial of "
        "pybroker never uses the data of a Kafka broker.",
    )
    log_dirs = optional_listing("Log directories, separated by commas.")
    log_segment_bytes = integer(
        1024**3, "Size in bytes at which a segment is closed and a new one is created.", at_least=1024**2, dynamic=True
    )
    log_roll_ms = optional_long(
        "Age in ms at which a segment is closed. Without log.roll.ms, log.roll.hours applies.", at_least=1, dynamic=True
    )
    log_roll_hours = integer(168, "Age in hours at which a segment is closed.", at_least=1)
    log_roll_jitter_ms = optional_long(
        "Maximum random time in ms that is subtracted from the age limit of a segment, so that not all segments roll "
        "at once. Without log.roll.jitter.ms, log.roll.jitter.hours applies.",
        at_least=0,
        dynamic=True,
    )
    log_roll_jitter_hours = integer(0, "Same as log.roll.jitter.ms, in hours.", at_least=0)
    log_index_size_max_bytes = integer(
        10 * 1024**2,
        "Size in bytes to which an index file is preallocated while its segment is active.",
        at_least=4,
        dynamic=True,
    )
    log_index_interval_bytes = integer(
        4096, "Number of bytes of the log between two index entries.", at_least=0, dynamic=True
    )
    log_retention_ms = optional_long(
        "Age in ms after which a segment may be deleted; a negative number disables this. Without log.retention.ms, "
        "log.retention.minutes applies.",
        dynamic=True,
    )
    log_retention_minutes = optional_integer(
        "Age in minutes after which a segment may be deleted; a negative number disables this. Without this key, "
        "log.retention.hours applies."
    )
    log_retention_hours = integer(
        168, "Age in hours after which a segment may be deleted; a negative number disables this."
    )
    log_retention_bytes = long(
        -1,
        "Size in bytes of a partition above which its oldest segments may be deleted; -1 for no limit.",
        dynamic=True,
    )
    log_retention_check_interval_ms = long(300_000, "Time in ms between two checks for segments to delete.", at_least=1)
    log_initial_task_delay_ms = long(
        30_000, "Time in ms from the start of the broker to the first check for segments to delete.", at_least=0
    )
    log_cleanup_policy = listing(
        ("delete",),
        "Policy for old segments: delete, compact, both, or neither if empty.",
        each_of=("delete", "compact"),
        dynamic=True,
    )
    log_cleaner_enable = boolean(True, "Whether compaction is enabled.")
    log_cleaner_threads = integer(1, "Number of compaction threads.", at_least=1, dynamic=True)
    log_cleaner_dedupe_buffer_size = long(
        128 * 1024**2,
        "Memory in bytes for the map of keys in compaction, shared by the compaction threads. Each thread needs more "
        "than 1 MiB.",
        dynamic=True,
    )
    log_cleaner_io_buffer_size = integer(
        512 * 1024, "Memory in bytes for reads and writes of compaction.", at_least=0, dynamic=True
    )
    log_cleaner_io_buffer_load_factor = double(
        0.9,
        "Fraction of log.cleaner.dedupe.buffer.size that may be filled. Keys that do not fit wait for the next pass.",
        dynamic=True,
    )
    log_cleaner_io_max_bytes_per_second = double(
        1.7976931348623157e308,
        "Maximum bytes per second that compaction reads and writes. As in Kafka, compaction stops with 0, and a "
        "negative number is no limit.",
        at_least=None,
        dynamic=True,
    )
    log_cleaner_backoff_ms = long(15000, "Pause in ms when no log needs compaction.", at_least=0, dynamic=True)
    log_cleaner_min_cleanable_ratio = double(
        0.5,
        "Minimum fraction of a log that must be dirty (not yet compacted) before the log is compacted.",
        at_most=1.0,
        dynamic=True,
    )
    log_cleaner_delete_retention_ms = long(
        86_400_000,
        "Time in ms for which a compacted log keeps the tombstone of a deleted key.",
        at_least=0,
        dynamic=True,
    )
    log_cleaner_min_compaction_lag_ms = long(
        0, "Minimum age in ms before compaction may remove a record.", at_least=0, dynamic=True
    )
    log_cleaner_max_compaction_lag_ms = long(
        LONG_MAX,
        "Age in ms after which a record is compacted, regardless of the dirty ratio of the log.",
        at_least=1,
        dynamic=True,
    )
    flush = string(
        "interval",
        "When appended records are flushed to disk. interval: as log.flush.interval.messages and log.flush.interval.ms "
        "specify. group: before every acknowledgement, with one sync for all waiting appends.",
        one_of=("interval", "group"),
        dynamic=True,
        ours="group if acknowledged records must survive a loss of power at all replicas",
    )
    log_flush_interval_messages = long(
        LONG_MAX, "Number of records after which a log is flushed to disk.", at_least=1, dynamic=True
    )
    log_flush_interval_ms = optional_long(
        "Time in ms after which a log is flushed to disk. Without log.flush.interval.ms, "
        "log.flush.scheduler.interval.ms applies.",
        dynamic=True,
    )
    log_flush_scheduler_interval_ms = long(LONG_MAX, "Same as log.flush.interval.ms, which overrides this key.")
    log_flush_offset_checkpoint_interval_ms = integer(
        60000, "Time in ms between two checkpoints of the recovery points and high watermarks.", at_least=0
    )
    log_flush_start_offset_checkpoint_interval_ms = integer(
        60000, "Time in ms between two checkpoints of the log start offsets.", at_least=0
    )
    log_segment_delete_delay_ms = long(
        60000,
        "Time in ms between the removal of a file from its log and its deletion from disk.",
        at_least=0,
        dynamic=True,
    )
    log_preallocate = boolean(
        False, "Whether the file of a new segment is preallocated at its full size.", dynamic=True
    )
    log_message_timestamp_type = string(
        "CreateTime",
        "Whether a record keeps the timestamp of its producer (CreateTime) or gets the time of the append "
        "(LogAppendTime).",
        one_of=("CreateTime", "LogAppendTime"),
        dynamic=True,
    )
    log_message_timestamp_before_max_ms = long(
        LONG_MAX, "Maximum time in ms by which the timestamp of a record may be in the past.", at_least=0, dynamic=True
    )
    log_message_timestamp_after_max_ms = long(
        _HOUR_MS,
        "Maximum time in ms by which the timestamp of a record may be in the future.",
        at_least=0,
        dynamic=True,
    )
    log_local_retention_ms = long(
        -2, "Maximum age in ms of local segments under tiered storage.", at_least=-2, dynamic=True, acts=False
    )
    log_local_retention_bytes = long(
        -2, "Maximum size in bytes of local segments under tiered storage.", at_least=-2, dynamic=True, acts=False
    )
    log_dir_failure_timeout_ms = long(
        30000,
        "Time in ms after which a broker stops if it cannot report a failed log directory to the controller.",
        at_least=1,
    )
    num_recovery_threads_per_data_dir = integer(
        2,
        "Number of threads per log directory that open logs, at the start and later, and flush logs at shutdown.",
        at_least=1,
        dynamic=True,
    )
    num_replica_alter_log_dirs_threads = optional_integer(
        "Maximum number of logs that move to another log directory at the same time. The default is the number of log "
        "directories.",
        at_least=1,
    )
    replica_alter_log_dirs_io_max_bytes_per_second = long(
        LONG_MAX,
        "Maximum bytes per second that all moves between log directories copy together. With 0, all moves stop.",
        at_least=0,
        dynamic=True,
    )
    message_max_bytes = integer(
        1024**2 + 12, "Maximum size in bytes of a record batch, as it is stored.", at_least=0, dynamic=True
    )
    compression_type = string(
        "producer",
        "Compression codec of stored batches; producer keeps the codec of the client.",
        one_of=_CODECS,
        dynamic=True,
    )
    compression_gzip_level = integer(
        -1,
        "Compression level of gzip, 1 to 9; -1 is the default of the codec.",
        at_least=-1,
        at_most=9,
        but_not=0,
        dynamic=True,
    )
    compression_lz4_level = integer(
        9, "Compression level of lz4, 1 to 17; 9 selects the fast compressor.", at_least=1, at_most=17, dynamic=True
    )
    compression_zstd_level = integer(
        3, "Compression level of zstd, -131072 to 22.", at_least=-131072, at_most=22, dynamic=True
    )
    producer_id_expiration_ms = integer(
        86_400_000,
        "Time in ms without activity of a producer after which its id and its sequence numbers expire.",
        at_least=1,
        dynamic=True,
    )
    producer_id_expiration_check_interval_ms = integer(
        600_000, "Time in ms between two checks for expired producer ids.", at_least=1
    )
