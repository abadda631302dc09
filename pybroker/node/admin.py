"""The admin listener of a node: built where `admin.http.listener` is set, served from before the logs are opened.

Owns when the node is ready. Nothing of it, h11 included, is imported where there is no such listener.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from pybroker.broker.broker_state import BrokerState
from pybroker.broker.shut_down import Stage
from pybroker.net.listeners import ListenError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.admin_http.server import AdminServer
    from pybroker.node.broker_part import BrokerPart
    from pybroker.node.controller_part import ControllerPart
    from pybroker.node.foundation import Foundation

log = logging.getLogger("pybroker.admin")

_MOST_CONNECTIONS = 16
"""Connections open at a time. A scraper uses one."""
_TIMEOUT_S = 10.0
"""A request, or its answer, may take so long."""


def build_admin(
    foundation: Foundation,
    broker: BrokerPart | None,
    controller: ControllerPart | None,
    state: Callable[[], BrokerState],
) -> AdminServer | None:
    """Open the admin listener, which ends with the node; None where none is asked for. Raises ListenError."""
    config = foundation.config
    address = config.admin_http_address
    if address is None:
        return None
    from pybroker.admin_http.pages import Pages
    from pybroker.admin_http.server import AdminServer, Limits
    from pybroker.node.measuring import Measuring

    most = {"max_topics": config.metrics_topics_max, "max_clients": config.metrics_clients_max}
    measuring = Measuring(broker, controller, state=state, **most)
    pages = Pages(measuring.families, lambda: _not_ready(broker, controller, state()))
    limits = Limits(_MOST_CONNECTIONS, _TIMEOUT_S)
    try:
        server = AdminServer(*address, pages, limits)
    except OSError as error:
        raise ListenError(f"admin.http.listener {config.admin_http_listener}: {error.strerror or error}") from error
    foundation.shut_down.add(Stage.DIRECTORIES, server, lambda: asyncio.to_thread(server.close))
    log.info("admin listener at http://%s:%d", *server.address)
    return server


def _not_ready(broker: BrokerPart | None, controller: ControllerPart | None, state: BrokerState) -> str | None:
    """Return why the node does not serve, None where it does."""
    if state is not BrokerState.RUNNING:
        return f"the node is {state.name.lower().replace('_', ' ')}"
    if broker is not None:
        return broker.not_ready
    if controller is not None and controller.controller.leader_id < 0:
        return "the quorum has no leader"
    return None
