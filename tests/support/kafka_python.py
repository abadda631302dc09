"""kafka-python as the tests use it: it closes the socket of a connection that was refused, or abandoned by a close.

The library leaves that socket to the garbage collector. Pytest then fails the test in which it is collected, which is
often a later one of the process.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import wraps
from typing import Any

from kafka.net.inet import KafkaNetSocket


def close_refused_sockets() -> None:
    """Let kafka-python close the socket of a connection that fails. Calling it again changes nothing."""
    connect: Callable[..., Any] = KafkaNetSocket.sock_connect
    if hasattr(connect, "__wrapped__"):
        return

    @wraps(connect)
    async def connect_or_close(self: Any, net: Any, sock: socket.socket, *arguments: Any, **keywords: Any) -> Any:
        try:
            return await connect(self, net, sock, *arguments, **keywords)
        except BaseException:  # GeneratorExit, if the client is closed while it connects
            sock.close()
            raise

    KafkaNetSocket.sock_connect = connect_or_close
