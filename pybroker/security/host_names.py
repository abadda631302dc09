"""Which names of hosts have an address: quotas of addresses and limits of connections may name hosts.

Owns the time that it may take. Must not know what the names are for. Runs the resolver in threads of its own, so that
a slow one delays neither the loop nor other work of threads.
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
"""How long names are looked up; one that has no answer by then counts as unknown."""
_MOST_AT_A_TIME = 4


async def addresses_of(names: Iterable[str]) -> dict[str, str]:
    """Return the address of each name, the first that the resolver gives, as text; a name without one is left out."""
    found: dict[str, str] = {}
    asked = []
    for name in dict.fromkeys(names):
        try:
            found[name] = str(ipaddress.ip_address(name))
        except ValueError:
            asked.append(name)
    if asked:
        loop = asyncio.get_running_loop()
        threads = ThreadPoolExecutor(_MOST_AT_A_TIME, thread_name_prefix="pybroker-resolver")
        lookups = {loop.run_in_executor(threads, _look_up, name): name for name in asked}
        done, _ = await asyncio.wait(lookups, timeout=TIMEOUT_S)
        threads.shutdown(wait=False, cancel_futures=True)
        found.update({lookups[one]: address for one in done if (address := one.result()) is not None})
    return found


async def unresolved_hosts(names: Iterable[str | None]) -> frozenset[str]:
    """Return the names that are no address and have none; None is no name."""
    wanted = {name for name in names if name}
    return frozenset(wanted - (await addresses_of(wanted)).keys())


def _look_up(name: str) -> str | None:
    try:
        return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError):
        return None
