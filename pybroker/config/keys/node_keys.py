"""Keys of the node: roles, identity, heartbeats, shutdown, threads."""

from __future__ import annotations

from pybroker.config.key import Key, Kind, boolean, integer, is_python_class, listing, long, optional_string
from pybroker.config.settings import Settings

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def _users(text: str) -> list[str]:
    return [user for user in text.split(";") if user.strip()]


class NodeKeys(Settings):
    """The identity of the node and its role in the cluster."""

    process_roles = listing(
        ("broker", "controller"),
        "The parts this node plays. Kafka wants this key to be set; a single node that lacks it is both.",
        each_of=("broker", "controller"),
    )
    node_id = integer(
        1,
        "The number of this node, unique in its cluster and kept in meta.properties. Kafka has no default for it; here "
        "a single node has one.",
        at_least=0,
    )
    broker_id = integer(-1, "The old name of node.id, taken where that is not given.")
    broker_rack = optional_string(
        "The rack of this broker, used when replicas are placed and when fetching from a near one."
    )
    broker_heartbeat_interval_ms = integer(2000, "Time in ms between heartbeats of a broker to the controller.")
    broker_session_timeout_ms = integer(9000, "A broker whose heartbeats fail to come for this many ms is fenced.")
    broker_death_grace_ms = integer(
        0,
        "A broker is fenced this many ms after its connection to the active controller has ended and its port refuses, "
        "without waiting for broker.session.timeout.ms; -1 waits for that.",
        at_least=-1,
        ours="raise it where a proxy before the brokers refuses connections now and then",
    )
    initial_broker_registration_timeout_ms = integer(
        60000, "A starting broker gives up when it is not registered within this many ms."
    )
    controlled_shutdown_enable = boolean(True, "Whether leadership moves to others before a broker stops.")
    background_threads = integer(10, "Threads for background work.", at_least=1, dynamic=True, acts=False)
    num_io_threads = integer(
        8,
        "Threads that work on requests in Kafka. Here network threads do that work in place, so nothing reads it.",
        at_least=1,
        dynamic=True,
        acts=False,
    )
    authorizer_class_name = Key(
        Kind.STRING,
        "",
        "Who decides what clients may do; none allows everything. Kafka's StandardAuthorizer decides by access control "
        "entries; module:Class is a Python class of your own (docs/guides/authorization.md).",
        parse=str,
        check=lambda value: value in ("", STANDARD_AUTHORIZER) or is_python_class(value),
        expected=f"{STANDARD_AUTHORIZER}, a Python class as module:Class, or nothing: no Java class can be loaded",
    )
    super_users = Key(
        Kind.STRING,
        None,
        "Principals that may do everything, parted by semicolons.",
        parse=lambda text: text or None,
        check=lambda value: value is None or all(all(user.strip().partition(":")) for user in _users(value)),
        expected="principals as User:name, parted by semicolons",
    )
    allow_everyone_if_no_acl_found = boolean(
        False, "Whether StandardAuthorizer allows everybody what no access control entry is about."
    )
    sasl_enabled_mechanisms = listing(
        ("GSSAPI",),
        "SASL mechanisms that listeners offer: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI (with "
        "pybroker[gssapi]); listener.name.<name>.sasl.enabled.mechanisms sets it for one.",
        dynamic=True,
    )
    auto_leader_rebalance_enable = boolean(True, "Whether leadership returns to preferred replicas by itself.")
    leader_imbalance_check_interval_seconds = long(
        300, "Seconds between checks for partitions whose leader is not their preferred replica.", at_least=1
    )
    leader_imbalance_per_broker_percentage = integer(
        0,
        "Leadership returns to a broker when others lead more than this percentage of the partitions that prefer it. "
        "Kafka has no such key since 4.0, and returns it always.",
        at_least=0,
        at_most=100,
        ours="10, Kafka's default before 4.0, where a move of leaders costs more than their imbalance",
    )
    unclean_leader_election_interval_ms = long(
        300_000,
        "Time in ms between checks for leaderless partitions whose topic enables unclean leader election.",
        at_least=1,
    )
