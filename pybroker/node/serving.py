"""How a broker serves requests: the APIs of its listeners, and what the active controller decides of them.

Must not decide when a broker begins to serve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.broker.shut_down import Stage
from pybroker.handlers.served import served_apis
from pybroker.handlers.telemetry_client import TELEMETRY_KEYS
from pybroker.net.forwarding import Forwarding
from pybroker.protocol.listener_role import ListenerRole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.net.dispatch import Api
    from pybroker.node.controller_access import ControllerAccess
    from pybroker.node.foundation import Foundation
    from pybroker.replica.publisher import PartitionPublisher


def build_apis(
    foundation: Foundation, access: ControllerAccess, publisher: PartitionPublisher, *, offers_telemetry: bool
) -> Mapping[int, Api]:
    """Return the APIs of a broker's listeners; requests that the active controller decides are forwarded to it."""
    apis: Mapping[int, Api] = served_apis(ListenerRole.BROKER)
    if not offers_telemetry:
        apis = {key: api for key, api in apis.items() if key not in TELEMETRY_KEYS}
    channels, source = access.channels, access.source
    if channels is None:
        return apis
    forwarding = Forwarding(
        channels.clients,
        lambda: source.is_leader,
        publisher.published,
        max_request_bytes=foundation.config.socket_request_max_bytes,
    )
    foundation.shut_down.add(Stage.PARKED_REQUESTS, forwarding, forwarding.close)
    return forwarding.apply(apis)
