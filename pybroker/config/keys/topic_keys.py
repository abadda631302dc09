"""Keys of topics and replicas on a broker: creation, replication, share groups."""

from __future__ import annotations

from pybroker.config.key import LONG_MAX, boolean, integer, long, optional_string, short
from pybroker.config.settings import Settings

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
REPLICA_SELECTORS = ("org.apache.kafka.common.replica.LeaderSelector", RACK_AWARE)


class TopicKeys(Settings):
    """Creation of topics, and replication between brokers."""

    auto_create_topics_enable = boolean(True, "Whether a Metadata request for an unknown topic creates it.")
    auto_create_topics_max_per_request = integer(
        100,
        "Maximum number of topics that one Metadata request creates. The response reports further topics as unknown; "
        "the next request for them creates them.",
        at_least=1,
        ours="raise it for a program that starts with more topics at once",
    )
    delete_topic_enable = boolean(True, "Whether topics can be deleted.")
    num_partitions = integer(
        1, "Number of partitions of a topic that is created without a number of partitions.", at_least=1
    )
    default_replication_factor = integer(
        1, "Replication factor of a topic that is created without a replication factor.", at_least=1
    )
    min_insync_replicas = integer(
        1, "Minimum number of in-sync replicas for a write with acks=all.", at_least=1, dynamic=True
    )
    unclean_leader_election_enable = boolean(
        False, "Whether a replica that is not in sync can become leader, at the cost of lost records.", dynamic=True
    )
    num_replica_fetchers = integer(1, "Number of threads that fetch from each leader broker.", at_least=1, dynamic=True)
    replica_lag_time_max_ms = long(
        30000, "Time in ms without being caught up after which a follower is removed from the in-sync replicas."
    )
    replica_fetch_max_bytes = integer(1024**2, "Bytes to fetch per partition from a leader.", at_least=0)
    replica_fetch_min_bytes = integer(
        1,
        "Minimum bytes in the response to a follower's Fetch. The leader waits for these bytes up to "
        "replica.fetch.wait.max.ms.",
    )
    replica_fetch_wait_max_ms = integer(500, "Maximum wait in ms of a follower's fetch.")
    replica_fetch_backoff_ms = integer(1000, "Pause in ms after a failed fetch from a leader.", at_least=0)
    replica_fetch_response_max_bytes = integer(
        10 * 1024**2, "Bytes to fetch from a leader in one response, over all partitions.", at_least=0
    )
    replica_socket_timeout_ms = integer(30000, "Maximum wait in ms on a connection of a follower to its leader.")
    replica_socket_receive_buffer_bytes = integer(
        -1,
        "Receive buffer in bytes of a follower's connection; -1 is the buffer of the operating system, which grows "
        "with the received data. With Kafka's default of 65536, a follower waits for its leader about 20 times per "
        "megabyte.",
        at_least=-1,
    )
    leader_replication_throttled_rate = long(
        LONG_MAX,
        "Maximum bytes per second sent to the followers of throttled replicas. In-sync replicas are never throttled.",
        at_least=0,
        dynamic=True,
    )
    follower_replication_throttled_rate = long(
        LONG_MAX,
        "Maximum bytes per second that throttled replicas fetch. In-sync replicas are never throttled.",
        at_least=0,
        dynamic=True,
    )
    replication_quota_window_num = integer(
        11, "Number of samples over which the rates of throttled replicas are measured.", at_least=1
    )
    replication_quota_window_size_seconds = integer(
        1, "Time span in seconds of each sample of replication.quota.window.num.", at_least=1
    )
    replica_selector_class = optional_string(
        "Class that selects the replica for a consumer's fetch (KIP-392). "
        "org.apache.kafka.common.replica.RackAwareReplicaSelector selects a replica in the consumer's rack. Without "
        "this key, or with org.apache.kafka.common.replica.LeaderSelector, the leader is selected.",
        one_of=REPLICA_SELECTORS,
    )
    replica_high_watermark_checkpoint_interval_ms = long(
        5000, "Time in ms between two checkpoints of the high watermarks."
    )
    share_coordinator_state_topic_replication_factor = short(
        3, "Replication factor of __share_group_state.", at_least=1
    )
    share_coordinator_state_topic_min_isr = short(
        2, "Minimum number of in-sync replicas of __share_group_state.", at_least=1
    )
