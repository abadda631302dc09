"""Keys of the metadata quorum: voters, timeouts, its log and snapshots."""

from __future__ import annotations

from pybroker.config.key import boolean, integer, listing, long, optional_string, string
from pybroker.config.settings import Settings


class QuorumKeys(Settings):
    """The metadata quorum, and the node's role in it."""

    controller_listener_names = listing(
        (),
        "Names of the listeners for controllers. Nodes connect to controllers on the first of these listeners. Every "
        "node of a cluster needs this key.",
    )
    controller_quorum_voters = listing(
        (),
        "Voters of the metadata quorum as id@host:port, the same on all nodes. Without this key, the set of voters can "
        "change at runtime.",
    )
    controller_quorum_bootstrap_servers = listing(
        (), "Addresses at which a node finds the metadata quorum, as host:port."
    )
    controller_quorum_auto_join_enable = boolean(
        False,
        "Whether a controller adds itself to the voters, if the metadata log contains the voters (KIP-1186). Otherwise "
        "`pybroker metadata-quorum add-controller` adds it. With true, a removed voter adds itself again.",
    )
    controller_quorum_election_timeout_ms = integer(
        1000,
        "Time in ms that a voter without a known leader waits before it starts an election. The actual wait is random, "
        "up to twice as long.",
        at_least=0,
    )
    controller_quorum_fetch_timeout_ms = integer(
        2000, "Maximum time in ms without a successful fetch before a voter starts an election.", at_least=0
    )
    controller_quorum_election_backoff_max_ms = integer(
        1000,
        "Maximum backoff in ms after a lost election, before the voter starts another one. The backoff grows with each "
        "lost election up to this value.",
        at_least=0,
    )
    controller_quorum_request_timeout_ms = integer(
        2000,
        "Maximum wait in ms for a response between controllers. It is also the TCP_USER_TIMEOUT of replica fetchers "
        "and of requests of brokers to other nodes: a connection ends if its peer acknowledges nothing for this time.",
        at_least=0,
    )
    controller_quorum_retry_backoff_ms = integer(
        20, "Backoff in ms before a controller request is retried.", at_least=0
    )
    controller_quorum_append_linger_ms = integer(
        25,
        "Time in ms for which the leader of the metadata quorum may accumulate records before it writes them. Here it "
        "never waits: it accumulates records only while the previous write is in progress.",
        at_least=0,
        acts=False,
    )
    controller_quorum_fetch_max_bytes = integer(1024**2, "Maximum bytes of the metadata log in one fetch.", at_least=1)
    controller_quorum_fetch_snapshot_max_bytes = integer(
        1024**2, "Maximum bytes of a metadata snapshot in one fetch.", at_least=1
    )
    controller_quorum_death_grace_ms = integer(
        0,
        "Time in ms after which a voter starts an election if its connection to the active controller has ended and "
        "the controller's port refuses connections. With -1, only controller.quorum.fetch.timeout.ms applies.",
        at_least=-1,
        ours="raise it where a proxy in front of the controllers sometimes refuses connections",
    )
    metadata_log_dir = optional_string(
        "Directory of the metadata log. Without this key, the first directory of log.dirs."
    )
    metadata_log_segment_bytes = integer(
        1024**3, "Maximum size in bytes of a segment of the metadata log.", at_least=8 * 1024**2
    )
    metadata_log_segment_ms = long(
        7 * 86_400_000, "Maximum time in ms before a new segment of the metadata log is created."
    )
    metadata_log_max_record_bytes_between_snapshots = long(
        20 * 1024**2, "Bytes of metadata records after which a snapshot is created.", at_least=1
    )
    metadata_log_max_snapshot_interval_ms = long(
        3_600_000,
        "Maximum time in ms without a metadata snapshot when there are new records; 0 disables this limit.",
        at_least=0,
    )
    metadata_max_retention_bytes = long(
        100 * 1024**2, "Maximum size in bytes of the metadata log and its snapshots before the oldest are deleted."
    )
    metadata_max_retention_ms = long(
        7 * 86_400_000, "Time in ms for which old metadata snapshots and the log before them are kept."
    )
    metadata_max_idle_interval_ms = integer(
        500,
        "Time in ms between two no-op records of the active controller; 0 disables them. A node without "
        "controller.listener.names writes none, because no other node reads its metadata log.",
        at_least=0,
    )
    controller_quota_window_num = integer(
        11, "Number of samples over which created and deleted partitions are measured for clients' quotas.", at_least=1
    )
    controller_quota_window_size_seconds = integer(
        1, "Time span in seconds of each sample of controller.quota.window.num.", at_least=1
    )
    sasl_mechanism_controller_protocol = string(
        "GSSAPI",
        "SASL mechanism with which a node authenticates to the listeners of controllers: PLAIN, SCRAM-SHA-256, "
        "SCRAM-SHA-512, OAUTHBEARER, GSSAPI.",
    )
