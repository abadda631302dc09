"""The admin listener of a node, built if `admin.http.listener` is set. It serves before the logs are opened.

Without such a listener, its modules and h11 are not imported.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from pybroker.admin_http.pages import Pages
from pybroker.admin_http.server import AdminServer, Limits
from pybroker.broker.shut_down import Stage
from pybroker.net.listeners import ListenError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.admin_http.server import AdminServer
    from pybroker.node.foundation import Foundation

log = logging.getLogger("pybroker.admin")

_MOST_CONNECTIONS = 16
"""Maximum number of open connections. A scraper uses one."""
_TIMEOUT_S = 10.0
"""Timeout of receiving a request and of sending its response, in seconds."""


def build_admin(foundation: Foundation, not_ready: Callable[[], str | None]) -> AdminServer | None:
    """Open the admin listener and return its server, or None if none is configured. It is closed when the node stops.

    `not_ready` returns why the node does not serve, or None if it does. Raises ListenError.
    """
    config = foundation.config
    address = config.admin_http_address
    if address is None:
        return None
    pages = Pages(foundation.metrics.families, not_ready)
    limits = Limits(_MOST_CONNECTIONS, _TIMEOUT_S)
    try:
        server = AdminServer(*address, pages, limits)
    except OSError as error:
        raise ListenError(f"admin.http.listener {config.admin_http_listener}: {error.strerror or error}") from error
    foundation.shut_down.add(Stage.DIRECTORIES, server, lambda: asyncio.to_thread(server.close))
    log.info("admin listener at http://%s:%d", *server.address)
    return server
