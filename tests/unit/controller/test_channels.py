"""The connections of a broker to the active controller."""

from __future__ import annotations

from pybroker.config.broker import BrokerConfig
from pybroker.controller.channels import build_channels


async def test_connections_to_the_controller_end_where_its_tcp_acknowledges_nothing_for_the_request_timeout() -> None:
    """A heartbeat is sent again on the connection of the one before: TCP's pauses after a cut would delay it."""
    config = BrokerConfig({"controller.quorum.request.timeout.ms": "1234"})
    channels = build_channels(config, lambda: None, None)
    slots = [slot for channel in (channels.heartbeats, channels.requests, channels.clients) for slot in channel._slots]
    assert {slot._unacknowledged_ms for slot in slots} == {1234}
    await channels.close()
