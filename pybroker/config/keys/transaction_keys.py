"""Keys of transactions: their coordinator, and the topic `__transaction_state`."""

from __future__ import annotations

from pybroker.config.key import boolean, integer, short
from pybroker.config.settings import Settings


class TransactionKeys(Settings):
    """Transactions, and the topic in which coordinators store them."""

    transaction_state_log_num_partitions = integer(
        50,
        "Number of partitions of __transaction_state when it is created. A transactional id is assigned to a partition "
        "by its hash.",
        at_least=1,
    )
    transaction_state_log_replication_factor = short(
        3,
        "Replication factor of __transaction_state when it is created. It is lowered to the number of brokers if there "
        "are fewer.",
        at_least=1,
    )
    transaction_state_log_min_isr = integer(
        2,
        "Minimum number of in-sync replicas (min.insync.replicas) of __transaction_state when it is created; at most "
        "its replication factor.",
        at_least=1,
    )
    transaction_state_log_segment_bytes = integer(
        100 * 1024**2,
        "Segment size in bytes of __transaction_state; small, for early compaction. Below the minimum of segment.bytes "
        "(1048576), the broker starts, but cannot create the topic and logs a warning.",
        at_least=1,
    )
    transaction_state_log_load_buffer_size = integer(
        5 * 1024**2, "Maximum number of bytes of __transaction_state in one read while a coordinator loads.", at_least=1
    )
    transaction_partition_verification_enable = boolean(
        True,
        "Whether the leader of a partition verifies with the transaction coordinator, before the first append, that "
        "the partition is part of the transaction. Clients whose requests add partitions implicitly (KIP-890) need no "
        "verification.",
        dynamic=True,
    )
    transaction_max_timeout_ms = integer(
        900_000, "Maximum transaction timeout in ms that a producer can request.", at_least=1
    )
    transactional_id_expiration_ms = integer(
        7 * 86_400_000, "Time in ms without activity after which a transactional id expires.", at_least=1
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = integer(
        10_000, "Time in ms between two checks for transactions that exceed their timeout.", at_least=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = integer(
        3_600_000, "Time in ms between two checks for expired transactional ids.", at_least=1
    )
    transaction_two_phase_commit_enable = boolean(
        False, "Whether transactions can take part in a two-phase commit (KIP-939), which is not supported.", only=False
    )
