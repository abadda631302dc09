"""`ReservedPorts`: the addresses of a test broker, reserved while it does not listen.

Owns sockets that are bound and never listen. The system gives their ports to no other process, and refuses
connections while the broker is down. The broker binds the same addresses, which SO_REUSEADDR on both sides allows.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.config.endpoint import Endpoint


class ReservedPorts:
    """The reserved addresses of one broker."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._endpoints: list[Endpoint] = []

    def reserve(self, endpoints: Iterable[Endpoint]) -> list[Endpoint]:
        """Reserve addresses, unless they are reserved, and return them with their ports.

        An address that cannot be reserved is returned unchanged: the broker cannot bind it either, and reports the
        error.
        """
        if not self._endpoints:
            self._endpoints = [self._reserve_one(endpoint) for endpoint in endpoints]
        return self._endpoints

    def _reserve_one(self, endpoint: Endpoint) -> Endpoint:
        with contextlib.suppress(OSError):
            family, kind, _, _, address = socket.getaddrinfo(
                endpoint.host or "0.0.0.0", endpoint.port, type=socket.SOCK_STREAM
            )[0]
            held = socket.socket(family, kind)
            self._sockets.append(held)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(address)
            return endpoint._replace(port=held.getsockname()[1])
        return endpoint

    def release(self) -> None:
        """Release the addresses."""
        for held in self._sockets:
            held.close()
        self._sockets.clear()
        self._endpoints.clear()
