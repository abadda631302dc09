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
        "Directory of the logs when log.dirs is not set. Kafka's default is /tmp/kafka-logs; another is used here so "
        "that a pybroker that is merely tried out never meets the data of a Kafka.",
    )
    log_dirs = optional_listing("Directories of the logs, separated by commas.")
    log_segment_bytes = integer(
        1024**3, "Size in bytes at which a segment is closed and a new one begun.", at_least=1024**2, dynamic=True
    )
    log_roll_ms = optional_long(
        "Age in ms at which a segment is closed; without it log.roll.hours.", at_least=1, dynamic=True
    )
    log_roll_hours = integer(168, "Age in hours at which a segment is closed.", at_least=1)
    log_roll_jitter_ms = optional_long(
        "At most this many ms are taken off a segment's age limit, at random, so that not all roll at once; without it "
        "log.roll.jitter.hours.",
        at_least=0,
        dynamic=True,
    )
    log_roll_jitter_hours = integer(0, "As log.roll.jitter.ms, in hours.", at_least=0)
    log_index_size_max_bytes = integer(
        10 * 1024**2,
        "Size in bytes that an index file is given while its segment is written.",
        at_least=4,
        dynamic=True,
    )
    log_index_interval_bytes = integer(4096, "Bytes of log between two index entries.", at_least=0, dynamic=True)
    log_retention_ms = optional_long(
        "Age in ms after which a segment may be deleted, never with a negative number; without it "
        "log.retention.minutes.",
        dynamic=True,
    )
    log_retention_minutes = optional_integer(
        "Age in minutes after which a segment may be deleted, never with a negative number; without it "
        "log.retention.hours."
    )
    log_retention_hours = integer(
        168, "Age in hours after which a segment may be deleted, never with a negative number."
    )
    log_retention_bytes = long(
        -1,
        "Size in bytes of a partition above which its oldest segments may be deleted; -1 is no limit.",
        dynamic=True,
    )
    log_retention_check_interval_ms = long(300_000, "Time in ms between checks for segments to delete.", at_least=1)
    log_initial_task_delay_ms = long(
        30_000, "Time in ms from the start of the broker to the first check for segments to delete.", at_least=0
    )
    log_cleanup_policy = listing(
        ("delete",),
        "What happens to old segments: delete, compact, both, or nothing when empty.",
        each_of=("delete", "compact"),
        dynamic=True,
    )
    log_cleaner_enable = boolean(True, "Whether compaction runs at all.")
    log_cleaner_threads = integer(1, "Threads that compact.", at_least=1, dynamic=True)
    log_cleaner_dedupe_buffer_size = long(
        128 * 1024**2,
        "Bytes of memory for the keys that compaction has seen; each of log.cleaner.threads needs more than 1 MiB.",
        dynamic=True,
    )
    log_cleaner_io_buffer_size = integer(
        512 * 1024, "Bytes of memory for reading and writing while compacting.", at_least=0, dynamic=True
    )
    log_cleaner_io_buffer_load_factor = double(
        0.9,
        "Share of log.cleaner.dedupe.buffer.size that may be filled; what does not fit waits for another pass.",
        dynamic=True,
    )
    log_cleaner_io_max_bytes_per_second = double(
        1.7976931348623157e308,
        "Most bytes that compaction reads and writes in a second. As in Kafka it stands still with 0, and a negative "
        "number is no limit.",
        at_least=None,
        dynamic=True,
    )
    log_cleaner_backoff_ms = long(15000, "Pause in ms when there is nothing to compact.", at_least=0, dynamic=True)
    log_cleaner_min_cleanable_ratio = double(
        0.5, "Share of a log that must be new before it is compacted.", at_most=1.0, dynamic=True
    )
    log_cleaner_delete_retention_ms = long(
        86_400_000,
        "Time in ms for which a compacted log keeps the mark of a deleted key.",
        at_least=0,
        dynamic=True,
    )
    log_cleaner_min_compaction_lag_ms = long(
        0, "Age in ms before which a record is not compacted away.", at_least=0, dynamic=True
    )
    log_cleaner_max_compaction_lag_ms = long(
        LONG_MAX,
        "Age in ms after which a record is compacted however clean the log is.",
        at_least=1,
        dynamic=True,
    )
    flush = string(
        "interval",
        "When what is appended is flushed to the disk: interval, as log.flush.interval.messages and "
        "log.flush.interval.ms say, or group, before every acknowledgement, by syncs that all appends share which wait "
        "for one.",
        one_of=("interval", "group"),
        dynamic=True,
        ours="group for acknowledged records that survive a loss of power at all replicas",
    )
    log_flush_interval_messages = long(
        LONG_MAX, "Records after which a log is flushed to the disk.", at_least=1, dynamic=True
    )
    log_flush_interval_ms = optional_long(
        "Time in ms after which a log is flushed to the disk; without it log.flush.scheduler.interval.ms.", dynamic=True
    )
    log_flush_scheduler_interval_ms = long(LONG_MAX, "As log.flush.interval.ms, when that is not set.")
    log_flush_offset_checkpoint_interval_ms = integer(
        60000, "Time in ms between writings of the recovery points and high watermarks.", at_least=0
    )
    log_flush_start_offset_checkpoint_interval_ms = integer(
        60000, "Time in ms between writings of the log start offsets.", at_least=0
    )
    log_segment_delete_delay_ms = long(
        60000, "Time in ms between taking a file out of use and deleting it.", at_least=0, dynamic=True
    )
    log_preallocate = boolean(False, "Whether a segment's file is given its full size when it is begun.", dynamic=True)
    log_message_timestamp_type = string(
        "CreateTime",
        "Whether a record keeps its maker's time (CreateTime) or gets the time of the append (LogAppendTime).",
        one_of=("CreateTime", "LogAppendTime"),
        dynamic=True,
    )
    log_message_timestamp_before_max_ms = long(
        LONG_MAX, "How far, in ms, a record's time may lie in the past.", at_least=0, dynamic=True
    )
    log_message_timestamp_after_max_ms = long(
        _HOUR_MS, "How far, in ms, a record's time may lie in the future.", at_least=0, dynamic=True
    )
    log_local_retention_ms = long(
        -2, "Age limit in ms of local segments under tiered storage.", at_least=-2, dynamic=True, acts=False
    )
    log_local_retention_bytes = long(
        -2, "Size limit in bytes of local segments under tiered storage.", at_least=-2, dynamic=True, acts=False
    )
    log_dir_failure_timeout_ms = long(
        30000,
        "A broker that cannot report a failed directory to the controller within this many ms stops.",
        at_least=1,
    )
    num_recovery_threads_per_data_dir = integer(
        2,
        "Threads per directory that open logs, at the start and later, and flush them at stop.",
        at_least=1,
        dynamic=True,
    )
    num_replica_alter_log_dirs_threads = optional_integer(
        "Logs that are moved to another log directory at a time; without it one for each log directory.", at_least=1
    )
    replica_alter_log_dirs_io_max_bytes_per_second = long(
        LONG_MAX,
        "Most bytes that all moves between log directories together copy in a second. With 0 they stand still.",
        at_least=0,
        dynamic=True,
    )
    message_max_bytes = integer(
        1024**2 + 12, "Largest record batch in bytes, as it is stored.", at_least=0, dynamic=True
    )
    compression_type = string(
        "producer",
        "Codec that batches are stored with; producer keeps what the client chose.",
        one_of=_CODECS,
        dynamic=True,
    )
    compression_gzip_level = integer(
        -1, "Level of gzip, 1 to 9; -1 is the codec's own.", at_least=-1, at_most=9, but_not=0, dynamic=True
    )
    compression_lz4_level = integer(
        9, "Level of lz4, 1 to 17; 9 is the fast compressor.", at_least=1, at_most=17, dynamic=True
    )
    compression_zstd_level = integer(3, "Level of zstd, -131072 to 22.", at_least=-131072, at_most=22, dynamic=True)
    producer_id_expiration_ms = integer(
        86_400_000,
        "A producer that was silent for this many ms is forgotten, and its sequence numbers with it.",
        at_least=1,
        dynamic=True,
    )
    producer_id_expiration_check_interval_ms = integer(
        600_000, "Time in ms between checks for expired producer ids.", at_least=1
    )
