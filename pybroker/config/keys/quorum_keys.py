"""Keys of the metadata quorum: voters, timeouts, its log and snapshots."""

from __future__ import annotations

from pybroker.config.key import boolean, integer, listing, long, optional_string, string
from pybroker.config.settings import Settings


class QuorumKeys(Settings):
    """The metadata quorum, and the node's role in it."""

    controller_listener_names = listing(
        (),
        "Names of the listeners that controllers use; a node without the role broker dials the first of them. A node "
        "of a cluster needs it.",
    )
    controller_quorum_voters = listing(
        (), "The voters of the metadata quorum as id@host:port, the same for all nodes; without it they may change."
    )
    controller_quorum_bootstrap_servers = listing((), "Where to find the metadata quorum, as host:port.")
    controller_quorum_auto_join_enable = boolean(
        False,
        "Whether a controller asks to vote by itself, where the log names the voters (KIP-1186); without it "
        "`pybroker metadata-quorum add-controller` makes it one. A voter that is removed would ask again.",
    )
    controller_quorum_election_timeout_ms = integer(
        1000,
        "How long, in ms, a voter that knows no leader waits for one before it stands for election; at random up to "
        "twice as long.",
        at_least=0,
    )
    controller_quorum_fetch_timeout_ms = integer(
        2000, "Longest time, in ms, without a successful fetch before a voter stands for election.", at_least=0
    )
    controller_quorum_election_backoff_max_ms = integer(
        1000,
        "Longest pause, in ms, before an election is tried again that was not won: the pauses grow up to it.",
        at_least=0,
    )
    controller_quorum_request_timeout_ms = integer(
        2000,
        "Longest wait, in ms, for a response between controllers. Replica fetchers and requests of brokers to other "
        "nodes end a connection whose peer acknowledges nothing for so long (TCP_USER_TIMEOUT).",
        at_least=0,
    )
    controller_quorum_retry_backoff_ms = integer(
        20, "Pause, in ms, before a controller request is tried again.", at_least=0
    )
    controller_quorum_append_linger_ms = integer(
        25,
        "How long, in ms, the leader of the metadata quorum may gather records before it writes them. It never waits: "
        "it gathers what comes while the write before is under way.",
        at_least=0,
        acts=False,
    )
    controller_quorum_fetch_max_bytes = integer(
        1024**2, "Most bytes of the metadata log that are fetched at a time.", at_least=1
    )
    controller_quorum_fetch_snapshot_max_bytes = integer(
        1024**2, "Most bytes of a metadata snapshot that are fetched at a time.", at_least=1
    )
    controller_quorum_death_grace_ms = integer(
        0,
        "A voter stands for election this many ms after the active controller's connection has ended and its port "
        "refuses, without waiting for controller.quorum.fetch.timeout.ms; -1 waits for that.",
        at_least=-1,
        ours="raise it where a proxy before the controllers refuses connections now and then",
    )
    metadata_log_dir = optional_string("Directory of the metadata log; without it the first of log.dirs.")
    metadata_log_segment_bytes = integer(
        1024**3, "Largest size in bytes of one segment of the metadata log.", at_least=8 * 1024**2
    )
    metadata_log_segment_ms = long(7 * 86_400_000, "Longest time in ms before the metadata log rolls.")
    metadata_log_max_record_bytes_between_snapshots = long(
        20 * 1024**2, "Bytes of metadata records after which a snapshot is made.", at_least=1
    )
    metadata_log_max_snapshot_interval_ms = long(
        3_600_000,
        "Longest time in ms without a metadata snapshot when there are new records; 0 means never by time.",
        at_least=0,
    )
    metadata_max_retention_bytes = long(100 * 1024**2, "Size in bytes up to which old metadata is kept.")
    metadata_max_retention_ms = long(7 * 86_400_000, "Time in ms for which old metadata is kept.")
    metadata_max_idle_interval_ms = integer(
        500,
        "The active controller writes a no-op record each time this many ms have passed; 0 means never. A node without "
        "controller.listener.names, whose metadata log nobody else reads, writes none.",
        at_least=0,
    )
    controller_quota_window_num = integer(
        11, "Samples over which partitions made and deleted are seen for clients' quotas.", at_least=1
    )
    controller_quota_window_size_seconds = integer(1, "Time in seconds that each of these samples spans.", at_least=1)
    sasl_mechanism_controller_protocol = string(
        "GSSAPI",
        "How a node shows who it is to the listeners of controllers: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, "
        "GSSAPI.",
    )
