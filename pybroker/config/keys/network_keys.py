"""Keys of listeners, connections and requests."""

from __future__ import annotations

from pybroker.config.key import INT_MAX, class_name, integer, listing, long, optional_string, string
from pybroker.config.settings import Settings


class NetworkKeys(Settings):
    """The listeners of the node, and the limits of connections and requests."""

    listeners = listing(
        ("PLAINTEXT://:9092",),
        "Where to listen, as NAME://host:port, the port from 0 to 65535. An empty host, as in the default, is every "
        "interface, port 0 any free port. Those that controller.listener.names names are for controllers. While a "
        "broker runs its others may come and go, but for that between brokers.",
        dynamic=True,
    )
    advertised_listeners = listing(
        (),
        "What clients get as the address to connect to, in the form of listeners. Without it a client gets the address "
        "it dialled, so that a broker behind any name or port answers with one that works.",
    )
    listener_security_protocol_map = string(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol behind each listener name, as NAME:PROTOCOL pairs separated by commas. Without it the "
        "names of controller.listener.names are PLAINTEXT, too.",
        dynamic=True,
    )
    ssl_principal_mapping_rules = string(
        "DEFAULT",
        "Rules from the distinguished name of a client's certificate to its principal, with commas between: "
        "RULE:pattern/replacement/ with L or U behind it, or DEFAULT.",
    )
    inter_broker_listener_name = optional_string(
        "The listener that brokers use among themselves; without it that of security.inter.broker.protocol."
    )
    security_inter_broker_protocol = string(
        "PLAINTEXT",
        "Security protocol between brokers when no listener is named for it.",
        one_of=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    num_network_threads = integer(
        3,
        "Threads that serve connections. Each has its own connections and answers Produce and Fetch itself. A change "
        "ends no connection: those of threads that are removed go to the others.",
        at_least=1,
        at_most=64,
        dynamic=True,
    )
    socket_send_buffer_bytes = integer(
        102400, "Size in bytes of a socket's send buffer (SO_SNDBUF); -1 leaves it to the system.", at_least=-1
    )
    socket_receive_buffer_bytes = integer(
        102400, "Size in bytes of a socket's receive buffer (SO_RCVBUF); -1 leaves it to the system.", at_least=-1
    )
    socket_request_max_bytes = integer(
        100 * 1024**2, "Largest request in bytes; a connection that announces a larger one is closed.", at_least=1
    )
    socket_request_max_elements = integer(
        50_000,
        "Elements of all arrays of one request, and its tagged fields, taken together; a connection that sends more is "
        "closed. Holds for requests of the control plane, so not for Produce and Fetch.",
        at_least=1,
        ours="raise it for a tool that names more topics or partitions in one request",
    )
    socket_listen_backlog_size = integer(50, "Connections that may wait to be accepted on a listener.", at_least=1)
    queued_max_requests = integer(
        500,
        "Requests that may be in work or waiting outside the data plane; beyond it no more are begun.",
        at_least=1,
    )
    queued_max_request_bytes = long(
        -1,
        "Bytes of requests that may be received and worked on at a time, over all connections, requests below 16 KiB "
        "left out; no further request is received while they are taken. -1 is no limit.",
    )
    queued_max_response_bytes = long(
        256 * 1024**2,
        "Memory in bytes of answers that clients have not read yet, over all connections; beyond it the connections "
        "that hold most of it are closed. Records that are sent from files take none.",
        at_least=1024**2,
        ours="lower it on a machine with little memory",
    )
    queued_max_response_bytes_per_connection = integer(
        64 * 1024**2,
        "Bytes of answers that may wait on one connection; while more wait, no further request of it is begun.",
        at_least=1024**2,
        ours="lower it where many slow clients read large answers",
    )
    congestion_control = optional_string(
        "TCP congestion control of a listener's connections, such as reno or bbr; without it the system's. "
        "listener.name.<name>.congestion.control sets it for one listener.",
        ours="bbr for a listener whose clients are behind a lossy link",
    )
    connections_max_idle_ms = long(
        600_000, "A connection without a request for this many ms is closed; a negative value means never."
    )
    max_connections = integer(
        INT_MAX,
        "Connections open at a time; more wait in the system's queue until one closes. Where the process may have few "
        "descriptors (RLIMIT_NOFILE) fewer are accepted, so that logs have some. "
        "listener.name.<name>.max.connections sets it for one listener.",
        at_least=0,
        dynamic=True,
    )
    max_connections_per_ip = integer(
        INT_MAX,
        "Connections open at a time from one address; more are closed at once.",
        at_least=0,
        dynamic=True,
    )
    max_connections_per_ip_overrides = string(
        "", "Exceptions to max.connections.per.ip as host:number pairs.", dynamic=True
    )
    max_connection_creation_rate = integer(
        INT_MAX,
        "Connections accepted in a second; more wait in the system's queue. "
        "listener.name.<name>.max.connection.creation.rate sets it for one listener.",
        at_least=0,
        dynamic=True,
    )
    quota_window_num = integer(11, "Samples over which clients' use is seen for their quotas.", at_least=1)
    quota_window_size_seconds = integer(1, "Time in seconds that each of these samples spans.", at_least=1)
    client_quota_callback_class = class_name(
        None, "The class that finds clients' quotas; only none is taken, which finds those that are set.", dynamic=False
    )
    connection_failed_authentication_delay_ms = integer(
        100, "Pause in ms before a connection that failed to authenticate is answered and closed.", at_least=0
    )
    connections_max_reauth_ms = long(
        0,
        "A client has to authenticate again within this many ms (KIP-368), or its connection is closed; 0 for never. "
        "listener.name.<name>.<mechanism>.connections.max.reauth.ms sets it for one listener and mechanism.",
    )
    sasl_server_max_receive_size = integer(
        524_288, "Largest frame in bytes of a connection that has not authenticated.", at_least=1
    )
    request_timeout_ms = integer(30000, "Longest wait in ms for an answer from another node.")
    fetch_max_bytes = integer(55 * 1024**2, "Most bytes that one Fetch is answered with.", at_least=1024)
    max_incremental_fetch_session_cache_slots = integer(
        1000, "Fetch sessions (KIP-227) that are kept at a time.", at_least=0
    )
    max_request_partition_size_limit = integer(
        2000, "Most partitions described in one answer to DescribeTopicPartitions.", at_least=1
    )
