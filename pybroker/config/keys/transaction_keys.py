"""Keys of transactions: their coordinator, and the topic `__transaction_state`."""

from __future__ import annotations

from pybroker.config.key import boolean, integer, short
from pybroker.config.settings import Settings


class TransactionKeys(Settings):
    """Transactions, and the topic in which coordinators store them."""

    transaction_state_log_num_partitions = integer(
        50,
        "Partitions of __transaction_state, when it is created. Transactional ids are dealt to them by their hash.",
        at_least=1,
    )
    transaction_state_log_replication_factor = short(
        3,
        "Replicas of __transaction_state, when it is created; as many as there are brokers, where there are fewer.",
        at_least=1,
    )
    transaction_state_log_min_isr = integer(
        2,
        "In-sync replicas that __transaction_state needs for a write, when it is created; no more than it has.",
        at_least=1,
    )
    transaction_state_log_segment_bytes = integer(
        100 * 1024**2,
        "Segment size in bytes of __transaction_state: small, so that it is compacted soon. The topic cannot be "
        "created with less than segment.bytes may be (1048576); the broker starts, and warns when it tries.",
        at_least=1,
    )
    transaction_state_log_load_buffer_size = integer(
        5 * 1024**2, "Most bytes of __transaction_state read at once while a coordinator is loaded.", at_least=1
    )
    transaction_partition_verification_enable = boolean(
        True,
        "Whether the coordinator of a transaction is asked before a partition takes its first batch of it, for clients "
        "that do not have partitions added by what they send (KIP-890).",
        dynamic=True,
    )
    transaction_max_timeout_ms = integer(
        900_000, "Longest transaction timeout in ms that a producer may ask for.", at_least=1
    )
    transactional_id_expiration_ms = integer(
        7 * 86_400_000, "A transactional id that was silent for this many ms is forgotten.", at_least=1
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = integer(
        10_000, "Time in ms between checks for transactions that exceed their timeout.", at_least=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = integer(
        3_600_000, "Time in ms between checks for expired transactional ids.", at_least=1
    )
    transaction_two_phase_commit_enable = boolean(
        False, "Whether transactions may take part in a two-phase commit (KIP-939), which is not served.", only=False
    )
