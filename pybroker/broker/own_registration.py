"""OwnRegistration: logs that a running broker was unregistered.

Owns that log message. After UnregisterBroker, the process continues without any other sign of it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage

log = logging.getLogger("pybroker.broker")


class OwnRegistration:
    """A metadata publisher of one run of a broker."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._is_registered = False

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        """Log an error if the broker was registered in the previous image, and is not in this one."""
        was, self._is_registered = self._is_registered, self._node_id in image.cluster.brokers
        if was and not self._is_registered:
            log.error(
                "Broker %d was unregistered while it runs: it leads no partition, and Metadata does not list it. "
                "A restart registers it again",
                self._node_id,
            )
