"""Client quotas of the data plane: it queries the quotas of a client, and again after they have changed.

Owns the version of the quotas in force, and the parameters of the measurement. Must not know how a client's quota is
selected (`pybroker.security.quotas`), nor the measured usage (docs/adr/0061).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from pybroker.net.native import count_request_time, set_client_quotas, set_quotas
from pybroker.security.quotas import KEYS, REQUEST_PERCENTAGE, ClientLimits, RequestTime, limits_of

if TYPE_CHECKING:
    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.quotas import ClientQuotasImage
    from pybroker.net.native import DataPlane, QuotaQuery

log = logging.getLogger("pybroker.net")

REMEMBERED = 65_536
"""Maximum clients and entities without open connections whose usage is kept: some hundred bytes each."""
FORGOTTEN_AFTER_MS = 3_600_000
"""Kafka's `INACTIVE_SENSOR_EXPIRATION_TIME_SECONDS`."""


class Origin(Protocol):
    """The origin of a request."""

    @property
    def connection(self) -> int:
        """The number of the connection."""

    @property
    def api_key(self) -> int:
        """The key of the API."""


class QuotaWindow(msgspec.Struct, frozen=True):
    """The window over which usage is measured."""

    samples: int
    """`quota.window.num`."""
    sample_seconds: int
    """`quota.window.size.seconds`."""


class Quotas:
    """Passes client quotas to the data plane. A metadata publisher. Used from one event loop."""

    def __init__(self, data_plane: DataPlane, window: QuotaWindow) -> None:
        self._data_plane = data_plane
        self._window = window
        self._image: ClientQuotasImage | None = None
        # The version of the quotas of clients; 0 while there are none.
        self._version = 0
        self._changes = 0
        self._counts_time = False
        self._exempt: frozenset[int] = frozenset()

    def begin(self, exempt: frozenset[int]) -> None:
        """Measure the time of requests, except for the API keys in `exempt`, which brokers use."""
        self._exempt = exempt

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply the quotas of an image."""
        quotas = image.quotas
        if quotas is self._image:
            return
        self._image = quotas
        keys = {key for limits in quotas.by_entity.values() for key in limits}
        self._counts_time = REQUEST_PERCENTAGE in keys
        before, self._changes = self._version, self._changes + 1
        self._version = self._changes if keys.intersection(KEYS) else 0
        if before or self._version:
            self._set()

    def respond(self, event: QuotaQuery) -> None:
        """Pass a client's quotas to the data plane. Its connection is muted until then."""
        limits = ClientLimits(None, None, None)
        try:
            if self._image is not None:
                limits = limits_of(self._image, event.principal[1], event.client_id)
        finally:
            produce, fetch, request = limits
            set_client_quotas(
                self._data_plane, event.connection, self._version, produce=produce, fetch=fetch, request=request
            )

    def time_of(self, origin: Origin) -> RequestTime | None:
        """Start measuring the time of a request; None if no client has a request quota."""
        if not self._counts_time or origin.api_key in self._exempt:
            return None
        time = RequestTime(partial(count_request_time, self._data_plane, origin.connection))
        time.begin()
        return time

    def _set(self) -> None:
        set_quotas(
            self._data_plane,
            version=self._version,
            samples=self._window.samples,
            sample_ms=self._window.sample_seconds * 1000,
            remembered=REMEMBERED,
            forgotten_after_ms=FORGOTTEN_AFTER_MS,
        )
