"""Keys of listeners, connections and requests."""

from __future__ import annotations

from pybroker.config.key import INT_MAX, class_name, integer, listing, long, optional_string, string
from pybroker.config.settings import Settings


class NetworkKeys(Settings):
    """The listeners of the node, and the limits of connections and requests."""

    listeners = listing(
        ("PLAINTEXT://:9092",),
        "Listeners as NAME://host:port, the port from 0 to 65535. An empty host, as in the default, is every "
        "interface; port 0 is any free port. Listeners in controller.listener.names are for controllers; the others, "
        "except the inter-broker listener, can be added and removed at runtime.",
        dynamic=True,
    )
    advertised_listeners = listing(
        (),
        "Addresses to which clients connect, in the form of listeners. Without this key, a client gets the address "
        "that it connected to, so that a broker behind any host name or port returns an address that works.",
    )
    listener_security_protocol_map = string(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Security protocol of each listener name, as NAME:PROTOCOL pairs separated by commas. Without this key, the "
        "names in controller.listener.names also map to PLAINTEXT.",
        dynamic=True,
    )
    ssl_principal_mapping_rules = string(
        "DEFAULT",
        "Rules that map the distinguished name of a client's certificate to a principal, separated by commas: "
        "RULE:pattern/replacement/ with an optional L or U at the end, or DEFAULT.",
    )
    inter_broker_listener_name = optional_string(
        "Listener for connections between brokers. Without this key, the listener whose name equals the value of "
        "security.inter.broker.protocol."
    )
    security_inter_broker_protocol = string(
        "PLAINTEXT",
        "Security protocol between brokers if inter.broker.listener.name is not set.",
        one_of=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    num_network_threads = integer(
        3,
        "Number of threads that serve connections. Each thread handles Produce and Fetch of its own connections. A "
        "change closes no connection: the connections of a removed thread move to the others.",
        at_least=1,
        at_most=64,
        dynamic=True,
    )
    socket_send_buffer_bytes = integer(
        102400,
        "Size in bytes of a socket's send buffer (SO_SNDBUF); -1 is the default of the operating system.",
        at_least=-1,
    )
    socket_receive_buffer_bytes = integer(
        102400,
        "Size in bytes of a socket's receive buffer (SO_RCVBUF); -1 is the default of the operating system.",
        at_least=-1,
    )
    socket_request_max_bytes = integer(
        100 * 1024**2,
        "Maximum size in bytes of a request. A connection that announces a larger one is closed.",
        at_least=1,
    )
    socket_request_max_elements = integer(
        50_000,
        "Maximum number of array elements and tagged fields in one request, in total. A connection that sends a "
        "request with more is closed. The limit applies to all requests but Produce and Fetch.",
        at_least=1,
        ours="raise it for a tool that sends more topics or partitions in one request",
    )
    socket_listen_backlog_size = integer(
        50, "Maximum number of connections that wait to be accepted on a listener.", at_least=1
    )
    queued_max_requests = integer(
        500,
        "Maximum number of requests of the control plane (all but Produce and Fetch) that are queued or in progress. "
        "At the limit, no further request starts.",
        at_least=1,
    )
    queued_max_request_bytes = long(
        -1,
        "Maximum bytes of requests that are being received or in progress, over all connections. Requests below 16 KiB "
        "do not count. At the limit, no further request is received. -1 for no limit.",
    )
    queued_max_response_bytes = long(
        256 * 1024**2,
        "Maximum memory in bytes of responses that clients have not read yet, over all connections. Above it, the "
        "connections that use the most are closed. Records that are sent from files do not count.",
        at_least=1024**2,
        ours="lower it on a machine with little memory",
    )
    queued_max_response_bytes_per_connection = integer(
        64 * 1024**2,
        "Maximum bytes of responses that are queued on one connection. Above it, no further request of the connection "
        "starts.",
        at_least=1024**2,
        ours="lower it where many slow clients read large responses",
    )
    congestion_control = optional_string(
        "TCP congestion control of a listener's connections, such as reno or bbr. Without this key, the default of the "
        "operating system applies. listener.name.<name>.congestion.control sets it for one listener.",
        ours="bbr for a listener whose clients are behind a lossy link",
    )
    connections_max_idle_ms = long(
        600_000, "Time in ms without a request after which a connection is closed; a negative number disables this."
    )
    max_connections = integer(
        INT_MAX,
        "Maximum number of open connections; further ones wait in the listen backlog until one closes. A low limit of "
        "file descriptors (RLIMIT_NOFILE) lowers this number, so that descriptors remain for logs. "
        "listener.name.<name>.max.connections sets it for one listener.",
        at_least=0,
        dynamic=True,
    )
    max_connections_per_ip = integer(
        INT_MAX,
        "Maximum number of open connections from one address. Further connections are closed at once.",
        at_least=0,
        dynamic=True,
    )
    max_connections_per_ip_overrides = string(
        "", "Exceptions to max.connections.per.ip, as host:number pairs.", dynamic=True
    )
    max_connection_creation_rate = integer(
        INT_MAX,
        "Maximum number of connections accepted per second; further ones wait in the listen backlog. "
        "listener.name.<name>.max.connection.creation.rate sets it for one listener.",
        at_least=0,
        dynamic=True,
    )
    quota_window_num = integer(
        11, "Number of samples over which the usage of clients is measured for quotas.", at_least=1
    )
    quota_window_size_seconds = integer(1, "Time span in seconds of each sample of quota.window.num.", at_least=1)
    client_quota_callback_class = class_name(
        None,
        "Class that determines the quotas of clients. Only none is accepted: the configured quotas apply.",
        dynamic=False,
    )
    connection_failed_authentication_delay_ms = integer(
        100,
        "Delay in ms after a failed authentication before the response is sent and the connection is closed.",
        at_least=0,
    )
    connections_max_reauth_ms = long(
        0,
        "Time in ms within which a client must re-authenticate (KIP-368), or its connection is closed; 0 disables "
        "this. listener.name.<name>.<mechanism>.connections.max.reauth.ms sets it for one listener and mechanism.",
    )
    sasl_server_max_receive_size = integer(
        524_288, "Maximum size in bytes of a frame on a connection that is not yet authenticated.", at_least=1
    )
    request_timeout_ms = integer(30000, "Maximum wait in ms for a response from another node.")
    fetch_max_bytes = integer(55 * 1024**2, "Maximum bytes in the response to one Fetch.", at_least=1024)
    max_incremental_fetch_session_cache_slots = integer(
        1000, "Maximum number of fetch sessions (KIP-227) that are kept.", at_least=0
    )
    max_request_partition_size_limit = integer(
        2000, "Maximum number of partitions in one response to DescribeTopicPartitions.", at_least=1
    )
