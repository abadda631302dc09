"""Loopback ports for processes that must know each other's ports before they start. Knows no broker."""

from __future__ import annotations

import random
import socket

_RANGE = range(15_000, 32_000)
"""Below the kernel's ephemeral ports, so that no outgoing connection uses a chosen port before a node binds it."""


def free_ports(count: int) -> list[int]:
    """Return distinct ports without a listener."""
    found: list[socket.socket] = []
    try:
        while len(found) < count:
            candidate = socket.socket()
            try:
                candidate.bind(("127.0.0.1", random.choice(_RANGE)))
            except OSError:
                candidate.close()
                continue
            found.append(candidate)
        return [one.getsockname()[1] for one in found]
    finally:
        for one in found:
            one.close()
