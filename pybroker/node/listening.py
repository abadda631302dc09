"""The listeners of a broker, with their data plane, certificates and limits: open, but not served yet.

Must not know partitions, nor the APIs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from pybroker.broker.shut_down import Stage
from pybroker.net.closing import close_connections
from pybroker.net.connection_limits import ConnectionQuotas
from pybroker.net.data_plane_settings import build_data_plane_settings
from pybroker.net.events import EventTable, log_line
from pybroker.net.listeners import BrokerListeners
from pybroker.net.native import DataPlane, LogDirectoryFailed, LogLine, PeerCertificate, QuotaQuery
from pybroker.net.network_threads import serve_by_threads
from pybroker.net.quotas import Quotas, QuotaWindow
from pybroker.net.rights import Rights
from pybroker.net.tls import TlsListeners
from pybroker.protocol.listener_role import ListenerRole

if TYPE_CHECKING:
    from pybroker.node.foundation import Foundation
    from pybroker.security.authorizer import AuthorizationRules


class Listening(msgspec.Struct, frozen=True, eq=False):
    """The broker listeners with their data plane, authorization and quotas."""

    data_plane: DataPlane
    events: EventTable
    rights: Rights
    quotas: Quotas
    tls: TlsListeners
    listeners: BrokerListeners
    connection_quotas: ConnectionQuotas


def listen(foundation: Foundation, authorizer: AuthorizationRules | None) -> Listening:
    """Open the listeners. Clients can connect, but receive no response yet. Raises ListenError."""
    config, live, end = foundation.config, foundation.live, foundation.shut_down.add
    data_plane = DataPlane(build_data_plane_settings(config, foundation.shares))
    events = EventTable()
    events.on(LogLine, log_line)
    events.on(LogDirectoryFailed, lambda event: foundation.failures.lose_directory(event.directory, event.error))
    end(Stage.ACCEPTING, data_plane, data_plane.stop_accepting)
    end(Stage.CONNECTIONS, data_plane, lambda: close_connections(data_plane))
    rights = Rights(data_plane, authorizer)
    quotas = Quotas(data_plane, QuotaWindow(config.quota_window_num, config.quota_window_size_seconds))
    events.on(QuotaQuery, quotas.respond)
    settings = config.tls_of_listeners()
    tls = TlsListeners(
        {one.endpoint.name: settings[one.endpoint.name] for one in config.broker_endpoints if one.is_encrypted},
        foundation.principal_builder,
    )
    listeners = BrokerListeners(data_plane, config, tls)
    live.subscribe(partial(serve_by_threads, data_plane))
    connection_quotas = ConnectionQuotas(data_plane, config, foundation.shares)
    end(Stage.ACCEPTING, connection_quotas, connection_quotas.stop)
    live.subscribe(connection_quotas.reconfigure)
    events.on(PeerCertificate, tls.name_peer)
    tls.start(data_plane)
    end(Stage.ACCEPTING, tls, tls.stop)
    live.subscribe(lambda changed: tls.reconfigure(changed.tls_of_listeners()))
    live.subscribe(listeners.reconfigure)
    foundation.metrics.add_data_plane(data_plane, tls, ListenerRole.BROKER)
    return Listening(data_plane, events, rights, quotas, tls, listeners, connection_quotas)
