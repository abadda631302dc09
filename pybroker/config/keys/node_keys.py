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
        "Roles of this node. Kafka requires this key. Here a single-node cluster does not: without it, the node has "
        "both roles.",
        each_of=("broker", "controller"),
    )
    node_id = integer(
        1,
        "Id of this node, unique in its cluster and stored in meta.properties. Kafka has no default. Here the default "
        "applies to a single-node cluster.",
        at_least=0,
    )
    broker_id = integer(-1, "Old name of node.id, used if node.id is not set.")
    broker_rack = optional_string(
        "Rack of this broker, used for the placement of replicas and for fetches from a replica in the consumer's rack."
    )
    broker_heartbeat_interval_ms = integer(2000, "Time in ms between the heartbeats of a broker to the controller.")
    broker_session_timeout_ms = integer(9000, "Time in ms without a heartbeat after which a broker is fenced.")
    broker_death_grace_ms = integer(
        0,
        "Time in ms after which a broker is fenced if its connection to the active controller has ended and its port "
        "refuses connections. With -1, only broker.session.timeout.ms applies.",
        at_least=-1,
        ours="raise it where a proxy in front of the brokers sometimes refuses connections",
    )
    initial_broker_registration_timeout_ms = integer(
        60000, "Time in ms after which a starting broker exits if it is not registered."
    )
    controlled_shutdown_enable = boolean(True, "Whether leadership moves to other brokers before a broker stops.")
    background_threads = integer(10, "Number of threads for background tasks.", at_least=1, dynamic=True, acts=False)
    num_io_threads = integer(
        8,
        "Number of threads that process requests in Kafka. Here network threads process requests, so this key has no "
        "effect.",
        at_least=1,
        dynamic=True,
        acts=False,
    )
    authorizer_class_name = Key(
        Kind.STRING,
        "",
        "Class that authorizes the operations of clients; if empty, all operations are allowed. Kafka's "
        "StandardAuthorizer uses ACLs; module:Class is a custom Python class (docs/guides/authorization.md).",
        parse=str,
        check=lambda value: value in ("", STANDARD_AUTHORIZER) or is_python_class(value),
        expected=f"{STANDARD_AUTHORIZER}, a Python class as module:Class, or nothing: no Java class can be loaded",
    )
    super_users = Key(
        Kind.STRING,
        None,
        "Principals for which all operations are allowed, separated by semicolons.",
        parse=lambda text: text or None,
        check=lambda value: value is None or all(all(user.strip().partition(":")) for user in _users(value)),
        expected="principals as User:name, separated by semicolons",
    )
    allow_everyone_if_no_acl_found = boolean(
        False, "Whether StandardAuthorizer allows all operations on a resource that has no ACLs."
    )
    sasl_enabled_mechanisms = listing(
        ("GSSAPI",),
        "SASL mechanisms that listeners offer: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI (with "
        "pybroker[gssapi]). listener.name.<name>.sasl.enabled.mechanisms sets them for one listener.",
        dynamic=True,
    )
    auto_leader_rebalance_enable = boolean(True, "Whether leadership returns to preferred replicas automatically.")
    leader_imbalance_check_interval_seconds = long(
        300,
        "Time in seconds between two checks for partitions whose leader is not their preferred replica.",
        at_least=1,
    )
    leader_imbalance_per_broker_percentage = integer(
        0,
        "Maximum percentage of partitions with another leader, among the partitions that have a broker as preferred "
        "replica. Above it, leadership returns to the broker. Kafka has no such key since 4.0, and always "
        "returns leadership.",
        at_least=0,
        at_most=100,
        ours="10, Kafka's default before 4.0, where a leader change costs more than imbalanced leaders",
    )
    unclean_leader_election_interval_ms = long(
        300_000,
        "Time in ms between two checks for partitions without a leader whose topic enables unclean leader election.",
        at_least=1,
    )
