"""Keys about who this node is: roles, identity, quorum, heartbeats, shutdown."""

from __future__ import annotations

from pybroker.config.key import Kind, boolean, integer, listing, long, optional_string, unserved
from pybroker.config.settings import Settings


class NodeKeys(Settings):
    """Identity of the node and its part in the cluster."""

    process_roles = listing(
        ("broker", "controller"),
        "The parts this node plays. Kafka wants this key to be set; without it a node here is both.",
        each_of=("broker", "controller"),
    )
    node_id = integer(
        1,
        "The number of this node, unique in its cluster and kept in meta.properties. Kafka has no default for it.",
        at_least=0,
    )
    broker_rack = optional_string(
        "The rack of this broker, used when replicas are placed and when fetching from a near one."
    )
    controller_listener_names = listing(
        (),
        "Names of the listeners that controllers use among themselves. They are not opened, as this version has one "
        "controller.",
    )
    controller_quorum_voters = listing((), "The voters of the metadata quorum as id@host:port.", acts=False)
    controller_quorum_bootstrap_servers = listing((), "Where to find the metadata quorum, as host:port.", acts=False)
    controller_quorum_election_timeout_ms = integer(
        1000,
        "Longest wait, in ms, without news from a leader of the metadata quorum before an election.",
        at_least=0,
        acts=False,
    )
    controller_quorum_fetch_timeout_ms = integer(
        2000,
        "Longest time, in ms, without a successful fetch before a voter stands for election.",
        at_least=0,
        acts=False,
    )
    controller_quorum_election_backoff_max_ms = integer(
        1000, "Longest pause, in ms, before an election is tried again.", at_least=0, acts=False
    )
    controller_quorum_request_timeout_ms = integer(
        2000, "Longest wait, in ms, for an answer between controllers.", at_least=0, acts=False
    )
    controller_quorum_retry_backoff_ms = integer(
        20, "Pause, in ms, before a controller request is tried again.", at_least=0, acts=False
    )
    controller_quorum_append_linger_ms = integer(
        25,
        "How long, in ms, the leader of the metadata quorum may gather records before it writes them.",
        at_least=0,
        acts=False,
    )
    broker_heartbeat_interval_ms = integer(
        2000, "Time in ms between heartbeats of a broker to the controller.", acts=False
    )
    broker_session_timeout_ms = integer(
        9000, "A broker whose heartbeats fail to come for this many ms is fenced.", acts=False
    )
    initial_broker_registration_timeout_ms = integer(
        60000, "A starting broker gives up when it is not registered within this many ms.", acts=False
    )
    controlled_shutdown_enable = boolean(True, "Whether leadership moves elsewhere before a broker stops.", acts=False)
    metadata_log_dir = optional_string("Directory of the metadata log; without it the first of log.dirs.")
    metadata_log_segment_bytes = integer(
        1024**3, "Largest size in bytes of one segment of the metadata log.", at_least=8 * 1024**2, acts=False
    )
    metadata_log_segment_ms = long(7 * 86_400_000, "Longest time in ms before the metadata log rolls.", acts=False)
    metadata_log_max_record_bytes_between_snapshots = long(
        20 * 1024**2, "Bytes of metadata records after which a snapshot is made.", at_least=1, acts=False
    )
    metadata_log_max_snapshot_interval_ms = long(
        3_600_000,
        "Longest time in ms without a metadata snapshot when there are new records; 0 means never by time.",
        at_least=0,
        acts=False,
    )
    metadata_max_retention_bytes = long(100 * 1024**2, "Size in bytes up to which old metadata is kept.", acts=False)
    metadata_max_retention_ms = long(7 * 86_400_000, "Time in ms for which old metadata is kept.", acts=False)
    metadata_max_idle_interval_ms = integer(
        500, "The controller writes a no-op record when it was idle for this many ms.", at_least=0, acts=False
    )
    background_threads = integer(10, "Threads for background work.", at_least=1, dynamic=True, acts=False)
    num_io_threads = integer(
        8,
        "Threads that work on requests in Kafka. Here network threads do that work in place, so nothing reads it.",
        at_least=1,
        dynamic=True,
        acts=False,
    )
    authorizer_class_name = unserved(
        Kind.STRING, "The authorizer. A broker that cannot check rights refuses to pretend."
    )
    super_users = unserved(Kind.STRING, "Principals that may do everything.")
    sasl_enabled_mechanisms = listing(("GSSAPI",), "SASL mechanisms offered.", dynamic=True, acts=False)
    auto_leader_rebalance_enable = boolean(
        True, "Whether leadership returns to preferred replicas by itself.", acts=False
    )
    leader_imbalance_check_interval_seconds = long(
        300, "Seconds between looks for partitions whose leader is not their preferred replica.", at_least=1, acts=False
    )
