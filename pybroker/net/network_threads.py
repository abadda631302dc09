"""The number of network threads.

Owns the change of the number, and its log messages. Must not know connections.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.net.native import network_threads, set_network_threads

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig
    from pybroker.net.native import DataPlane

log = logging.getLogger("pybroker.net")


def serve_by_threads(data_plane: DataPlane, config: BrokerConfig) -> None:
    """Start or stop network threads for `num.network.threads`. If some cannot be started, the others serve."""
    wanted, before = config.num_network_threads, network_threads(data_plane)
    if wanted == before:
        return
    try:
        set_network_threads(data_plane, wanted)
    except OSError as error:
        log.error(
            "Failed to resize network threads to num.network.threads=%d: %s; keeping %d threads",
            wanted,
            error,
            network_threads(data_plane),
        )
    else:
        log.info("Resized network threads to %d from %d", wanted, before)
