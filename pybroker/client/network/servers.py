"""Parses `bootstrap.servers` as Kafka's Java client does (ClientUtils, Utils.getHost).

Owns the syntax of the list. Must not resolve names: only connecting shows whether a host exists.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address

from pybroker.client.errors import SettingError

# A listener name in front is ignored, as in `PLAINTEXT://host:9092`; brackets enclose IPv6 addresses.
_SERVER = re.compile(r"(?:[0-9a-zA-Z._%-]*://)?\[?(?P<host>[0-9a-zA-Z._:%-]*)\]?:(?P<port>[0-9]+)")
_LAST_PORT = 65_535
_THIS_MACHINE = "localhost"


def parse_servers(text: str) -> tuple[str, ...]:
    """Return the servers of a comma-separated list as `host:port`, each once. An empty host is this machine.

    Raises SettingError. Unlike Java's client, it rejects port 0, on which no server listens.
    """
    if not text.strip():
        raise SettingError(f"bootstrap.servers={text}: no server found, expected host:port")
    return tuple(dict.fromkeys(_parse(server.strip(), text) for server in text.split(",")))


def _parse(server: str, text: str) -> str:
    found = _SERVER.fullmatch(server)
    # Python refuses to parse numbers with too many digits. Leading zeros are allowed.
    port = 0 if found is None else int(found["port"].lstrip("0")[: len(str(_LAST_PORT)) + 1] or 0)
    if found is None or not 1 <= port <= _LAST_PORT or not _is_host(found["host"]):
        raise SettingError(
            f"bootstrap.servers={text}: expected host:port, with a port from 1 to {_LAST_PORT}, instead of "
            f"{server or 'an empty entry'}"
        )
    host = found["host"] or _THIS_MACHINE
    # Name resolution accepts an address of a network interface (`fe80::1%eth0`) only without brackets.
    return f"[{host}]:{port}" if ":" in host and "%" not in host else f"{host}:{port}"


def _is_host(text: str) -> bool:
    """Return whether a text may be a host. With colons it must be an IPv6 address, or it lacks the port."""
    if ":" not in text:
        return True
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True
