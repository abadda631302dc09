"""Keys of topics and replicas on a broker: creation, replication, share groups."""

from __future__ import annotations

from pybroker.config.key import LONG_MAX, boolean, integer, long, optional_string, short
from pybroker.config.settings import Settings

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
REPLICA_SELECTORS = ("org.apache.kafka.common.replica.LeaderSelector", RACK_AWARE)


class TopicKeys(Settings):
    """Creation of topics, and replication between brokers."""

    auto_create_topics_enable = boolean(True, "Whether asking about an unknown topic creates it.")
    auto_create_topics_max_per_request = integer(
        100,
        "Topics that one request for metadata may create; those beyond are unknown in its answer, and made when they "
        "are asked about again.",
        at_least=1,
        ours="raise it for a program that begins with more topics at once",
    )
    delete_topic_enable = boolean(True, "Whether topics may be deleted.")
    num_partitions = integer(1, "Partitions of a topic whose creator names no number.", at_least=1)
    default_replication_factor = integer(1, "Replicas of a topic whose creator names no number.", at_least=1)
    min_insync_replicas = integer(1, "In-sync replicas that acks=all needs at least.", at_least=1, dynamic=True)
    unclean_leader_election_enable = boolean(
        False, "Whether a replica that is not in sync may lead, at the price of lost records.", dynamic=True
    )
    num_replica_fetchers = integer(1, "Threads that fetch from each leading broker.", at_least=1, dynamic=True)
    replica_lag_time_max_ms = long(
        30000, "A follower that has not caught up for this many ms leaves the in-sync replicas."
    )
    replica_fetch_max_bytes = integer(1024**2, "Bytes fetched per partition from a leader.", at_least=0)
    replica_fetch_min_bytes = integer(1, "Least bytes that a follower's fetch waits for.")
    replica_fetch_wait_max_ms = integer(500, "Longest wait in ms of a follower's fetch.")
    replica_fetch_backoff_ms = integer(1000, "Pause in ms after a failed fetch from a leader.", at_least=0)
    replica_fetch_response_max_bytes = integer(10 * 1024**2, "Bytes fetched from a leader at a time.", at_least=0)
    replica_socket_timeout_ms = integer(30000, "Longest wait in ms on a follower's connection.")
    replica_socket_receive_buffer_bytes = integer(
        -1,
        "Receive buffer in bytes of a follower's connection; -1 for the system's, which grows with what comes. Kafka's "
        "default is 65536, which has a follower wait for its leader some twenty times a megabyte.",
        at_least=-1,
    )
    leader_replication_throttled_rate = long(
        LONG_MAX,
        "Most bytes a second that the followers of throttled replicas are sent; those in sync are never held back.",
        at_least=0,
        dynamic=True,
    )
    follower_replication_throttled_rate = long(
        LONG_MAX,
        "Most bytes a second that throttled replicas fetch; those in sync are never held back.",
        at_least=0,
        dynamic=True,
    )
    replication_quota_window_num = integer(
        11, "Samples over which the rates of throttled replicas are seen.", at_least=1
    )
    replication_quota_window_size_seconds = integer(1, "Time in seconds that each of these samples spans.", at_least=1)
    replica_selector_class = optional_string(
        "How a consumer's fetch finds its replica (KIP-392): "
        "org.apache.kafka.common.replica.RackAwareReplicaSelector takes one of the consumer's rack, without it and "
        "with org.apache.kafka.common.replica.LeaderSelector it is the leader.",
        one_of=REPLICA_SELECTORS,
    )
    replica_high_watermark_checkpoint_interval_ms = long(5000, "Time in ms between writings of the high watermarks.")
    share_coordinator_state_topic_replication_factor = short(3, "Replicas of __share_group_state.", at_least=1)
    share_coordinator_state_topic_min_isr = short(2, "In-sync replicas that __share_group_state needs.", at_least=1)
