"""The admin listener of a node: built where `admin.http.listener` is set, served from before the logs are opened.

Nothing of it, h11 included, is imported where there is no such listener.
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
"""Connections open at a time. A scraper uses one."""
_TIMEOUT_S = 10.0
"""A request, or its answer, may take so long."""


def build_admin(foundation: Foundation, not_ready: Callable[[], str | None]) -> AdminServer | None:
    """Open the admin listener, which ends with the node; None where none is asked for. Raises ListenError.

    `not_ready` returns why the node does not serve, None where it does.
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
