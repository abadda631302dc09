"""Registration of this node as a controller: its endpoints and the features that it supports (KIP-919).

Owns the incarnation id of the controller, and the retries of its registration at the active controller. Must not know
the quorum: an unregistered controller votes too. Follows the image as a publisher; the image is authoritative.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Protocol

import msgspec

from pybroker.controller.cluster.controllers import FIRST_METADATA_VERSION_WITH_CONTROLLERS
from pybroker.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.controller.cluster.events import Result
    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage

log = logging.getLogger("pybroker.controller")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 60.0


class Registrar(Protocol):
    """The active controller, as another controller sees it when it registers."""

    async def register_controller(
        self,
        controller_id: int,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, tuple[str, int]],
        security_protocols: Mapping[str, int],
        features: Mapping[str, tuple[int, int]],
    ) -> Result:
        """Register a controller."""


class Reachable(msgspec.Struct, frozen=True):
    """The endpoints of this controller, by listener name."""

    listeners: Mapping[str, tuple[str, int]]
    security_protocols: Mapping[str, int]


class ControllerRegistration:
    """One run of a controller. Used from the event loop."""

    def __init__(
        self, node_id: int, registrar: Callable[[], Registrar], unreachable: type[Exception], reachable: Reachable
    ) -> None:
        """`registrar` returns the active controller; `unreachable` is raised when it cannot be reached."""
        self._node_id = node_id
        self._registrar = registrar
        self._unreachable = unreachable
        self._reachable = reachable
        self._incarnation_id = os.urandom(16)
        self._registering: asyncio.Task[None] | None = None
        # Why the last try failed, None if it succeeded. A repeated failure is logged once.
        self._failure: str | None = None

    def publish(self, _delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Register if the image lacks this incarnation; stop retrying once the image contains it."""
        known = image.cluster.controllers.get(self._node_id)
        is_known = known is not None and known.incarnation_id == self._incarnation_id
        level = image.features.levels.get(METADATA_VERSION, 0)
        wanted = not is_known and level >= FIRST_METADATA_VERSION_WITH_CONTROLLERS
        if wanted and self._registering is None:
            self._registering = asyncio.ensure_future(self._register())
        elif not wanted and self._registering is not None:
            self._registering.cancel()
            self._registering = None

    async def stop(self) -> None:
        """Stop retrying."""
        if self._registering is not None:
            self._registering.cancel()
            await asyncio.gather(self._registering, return_exceptions=True)

    async def _register(self) -> None:
        """Retry until the image contains the registration: a response may come from a former leader."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                result = await self._registrar().register_controller(
                    self._node_id,
                    incarnation_id=self._incarnation_id,
                    listeners=self._reachable.listeners,
                    security_protocols=self._reachable.security_protocols,
                    features=SUPPORTED_FEATURES,
                )
            except self._unreachable as error:
                self._note_failure(str(error))
            else:
                if result.error_code:
                    self._note_failure(result.error_message or result.error_code.message)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _note_failure(self, failure: str) -> None:
        if self._failure is None:
            log.warning("This controller is not registered yet: %s; retrying", failure)
        self._failure = failure
