"""What clients have used of their quotas, as brokers show it on their admin listeners.

Owns the request, and the lines of a page that are used. Rates are computed from two pages (`pybroker.cli.top.rates`).
Kafka's protocol has no such data, and clients without a quota have no lines.
"""

from __future__ import annotations

import http.client
import re
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.errors import CommandError
from pybroker.config.keys.admin_keys import parse_address

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMEOUT_S = 10
_MOST_BYTES = 64 * 2**20
"""Maximum bytes of a page; with 10,000 topics it has some megabytes."""
_TEXT = r'"((?:[^"\\]|\\.)*)"'
_LINE = re.compile(
    rf"^kafka_server_(produce|fetch)_(bytes|throttle_time_seconds)_total{{user={_TEXT},client_id={_TEXT}}} (\S+)$", re.M
)
_ESCAPED = re.compile(r"\\(.)")


class Client(NamedTuple):
    """The entity of a quota."""

    user: str
    """Empty where the quota applies to all users."""
    client_id: str
    """Empty where the quota applies to all client ids."""


class ClientUse(NamedTuple):
    """The use of a client's quotas at all queried brokers, since each has known the client."""

    bytes_in: float = 0.0
    bytes_out: float = 0.0
    throttled_s: float = 0.0


def parse_addresses(text: str) -> list[tuple[str, int]]:
    """Parse `host:port,host:port`. Raises ConfigError."""
    return [parse_address("--metrics", one) for one in text.split(",")]


def query_clients(addresses: list[tuple[str, int]]) -> Mapping[Client, ClientUse]:
    """Query admin listeners for the use by clients. Raises CommandError for one that does not respond."""
    uses: dict[Client, ClientUse] = {}
    for host, port in addresses:
        for client, use in parse_page(_page(host, port)).items():
            before = uses.get(client, ClientUse())
            uses[client] = ClientUse(*(one + other for one, other in zip(before, use, strict=True)))
    return uses


def parse_page(text: str) -> dict[Client, ClientUse]:
    """Parse the use by clients from a page of metrics."""
    uses: dict[Client, ClientUse] = {}
    for quota, what, user, client_id, value in _LINE.findall(text):
        client = Client(_unescaped(user), _unescaped(client_id))
        use, number = uses.get(client, ClientUse()), float(value)
        if what == "throttle_time_seconds":
            use = use._replace(throttled_s=use.throttled_s + number)
        elif quota == "produce":
            use = use._replace(bytes_in=number)
        else:
            use = use._replace(bytes_out=number)
        uses[client] = use
    return uses


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


def _page(host: str, port: int) -> str:
    try:
        with closing(http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)) as connection:
            connection.request("GET", "/metrics")
            response = connection.getresponse()
            body = response.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise CommandError(
            f"--metrics {host}:{port}: {error or type(error).__name__}; expected the admin listener of a broker "
            "(admin.http.listener)"
        ) from None
    if response.status != http.client.OK:
        raise CommandError(f"--metrics {host}:{port}: /metrics answers {response.status} {response.reason}")
    return body.decode(errors="replace")
