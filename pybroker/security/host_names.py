"""Resolves host names in quotas of addresses and in connection limits.

Owns the timeout. Must not know the use of the names. Runs the resolver in threads of its own, so that a slow one
delays neither the loop nor other threads' work.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TIMEOUT_S = 5.0
"""Timeout of a resolution in seconds, after which a name counts as unknown."""
_MOST_AT_A_TIME = 4


def written_address(name: str) -> str | None:
    """Return the address that a text is, None for a name.

    The zone (RFC 4007: `%eth0`) is removed: clients have none here.
    """
    try:
        return str(ipaddress.ip_address(ipaddress.ip_address(name).packed))
    except ValueError:
        return None


async def addresses_of(names: Iterable[str]) -> dict[str, str]:
    """Return the first resolved address of each name, as text. Names without an address are omitted."""
    found: dict[str, str] = {}
    requested = []
    for name in dict.fromkeys(names):
        address = written_address(name)
        if address is None:
            requested.append(name)
        else:
            found[name] = address
    if requested:
        loop = asyncio.get_running_loop()
        threads = ThreadPoolExecutor(_MOST_AT_A_TIME, thread_name_prefix="pybroker-resolver")
        lookups = {loop.run_in_executor(threads, _look_up, name): name for name in requested}
        done, _ = await asyncio.wait(lookups, timeout=TIMEOUT_S)
        threads.shutdown(wait=False, cancel_futures=True)
        found.update({lookups[one]: address for one in done if (address := one.result()) is not None})
    return found


async def unresolved_hosts(names: Iterable[str | None]) -> frozenset[str]:
    """Return the names that are no address and resolve to none; None is no name."""
    wanted = {name for name in names if name}
    return frozenset(wanted - (await addresses_of(wanted)).keys())


def _look_up(name: str) -> str | None:
    try:
        return written_address(str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0]))
    except (OSError, UnicodeError):
        return None
