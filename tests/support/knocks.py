"""A listener in place of an unavailable broker: it counts and closes every connection."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self


class Knocks:
    """`with Knocks(port) as knocks:` binds the port. `count` is the number of connections."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.count = 0

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(60)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.close()
            self.count += 1
