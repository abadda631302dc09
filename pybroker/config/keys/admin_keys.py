"""Keys of the admin listener, which serves metrics and the node's health over HTTP.

Kafka has none of these: it exports metrics by JMX. Must not know the content.
"""

from __future__ import annotations

import re

from pybroker.config.errors import ConfigError
from pybroker.config.key import integer, optional_string
from pybroker.config.settings import Settings

_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[^\s:/\[\]]+)):(?P<port>[0-9]{1,5})")
_LAST_PORT = 65535


class AdminKeys(Settings):
    """The address of the admin listener, and its limits."""

    admin_http_listener = optional_string(
        "Address at which /metrics, /healthz and /readyz are served over HTTP, as host:port, such as 127.0.0.1:9404; "
        "port 0 is any free port. Without this key there is no admin listener. The listener has no authentication and "
        "no encryption: use an address that only monitoring systems can reach.",
        ours="set it where a Prometheus server, a load balancer or a supervisor monitors the node",
    )
    metrics_topics_max = integer(
        1000,
        "Maximum number of topics, in order of name, that have their own series in /metrics, partitions included. The "
        "other topics appear only as a count and in the totals of all topics.",
        at_least=0,
        ours="raise it to monitor every topic of a large cluster; lower it where each series costs money",
    )
    metrics_clients_max = integer(
        1000,
        "Maximum number of users and client ids that have their own series in /metrics, for each quota. Also the "
        "maximum number of addresses with a connection rate limit that have their own series. The series of the "
        "entities with the highest usage are included; the others appear only as a count.",
        at_least=0,
        ours="raise it to monitor every client with a quota; lower it where each series costs money",
    )


def parse_address(key: str, text: str) -> tuple[str, int]:
    """Parse `host:port`, with an IPv6 address in brackets. Raises ConfigError."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or int(match["port"]) > _LAST_PORT:
        raise ConfigError(key, text, f"host:port, such as 127.0.0.1:9404, the port from 0 to {_LAST_PORT}")
    return match["six"] or match["host"], int(match["port"])
