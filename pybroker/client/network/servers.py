"""`bootstrap.servers`: which servers a text names, read as Kafka's Java client reads it (ClientUtils, Utils.getHost).

Owns the form of the list. Must not look up a name: only connecting shows whether a host is there.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address

from pybroker.client.errors import SettingError

# A listener's name in front is passed over, as in `PLAINTEXT://host:9092`; brackets are those of IPv6 addresses.
_SERVER = re.compile(r"(?:[0-9a-zA-Z._%-]*://)?\[?(?P<host>[0-9a-zA-Z._:%-]*)\]?:(?P<port>[0-9]+)")
_LAST_PORT = 65_535
_THIS_MACHINE = "localhost"


def parse_servers(text: str) -> tuple[str, ...]:
    """Return what a comma-separated list names as `host:port`, each once; without a host it is this machine.

    Raises SettingError. Beyond what Java's client refuses, it refuses port 0, where no server listens.
    """
    if not text.strip():
        raise SettingError(f"bootstrap.servers={text}: names no server, expected host:port")
    return tuple(dict.fromkeys(_parse(server.strip(), text) for server in text.split(",")))


def _parse(server: str, text: str) -> str:
    found = _SERVER.fullmatch(server)
    # More digits than that are a number that Python refuses to read, and leading zeros are fine.
    port = 0 if found is None else int(found["port"].lstrip("0")[: len(str(_LAST_PORT)) + 1] or 0)
    if found is None or not 1 <= port <= _LAST_PORT or not _is_host(found["host"]):
        raise SettingError(
            f"bootstrap.servers={text}: expected host:port, with a port from 1 to {_LAST_PORT}, instead of "
            f"{server or 'an empty entry'}"
        )
    host = found["host"] or _THIS_MACHINE
    # Name look-ups take an address of a network interface (`fe80::1%eth0`) without brackets only.
    return f"[{host}]:{port}" if ":" in host and "%" not in host else f"{host}:{port}"


def _is_host(text: str) -> bool:
    """Return whether a text may be a host: with colons it is an address of IPv6, or one that lacks the port."""
    if ":" not in text:
        return True
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True
