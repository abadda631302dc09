"""Registration of controllers (KIP-919): their endpoints, and the features that they support.

Owns the set of registrations. A controller votes according to the quorum's configuration, registered or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import RegisterController, Result
from pybroker.machine.machine import Outcome
from pybroker.metadata.features import METADATA_VERSION
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.register_controller import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)

if TYPE_CHECKING:
    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.schema import Message

FIRST_METADATA_VERSION_WITH_CONTROLLERS = 15
"""Kafka's 3.7-IV0."""


def register_controller(image: MetadataImage, event: RegisterController) -> Outcome[Message, Result]:
    """Decide about a controller's registration; an equal registration changes nothing."""
    level = image.features.levels.get(METADATA_VERSION, FIRST_METADATA_VERSION_WITH_CONTROLLERS)
    if level < FIRST_METADATA_VERSION_WITH_CONTROLLERS:
        message = "The current MetadataVersion is too old to support controller registrations."
        return Outcome((), Result(ErrorCode.UNSUPPORTED_VERSION, message))
    before = image.cluster.controllers.get(event.controller_id)
    if before is not None and before.incarnation_id == event.incarnation_id and before.listeners == event.listeners:
        return Outcome((), Result())
    record = RegisterControllerRecord(
        controller_id=event.controller_id,
        incarnation_id=event.incarnation_id,
        end_points=[
            ControllerEndpoint(name=name, host=host, port=port, security_protocol=event.security_protocols.get(name, 0))
            for name, (host, port) in event.listeners.items()
        ],
        features=[
            ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in event.features.items()
        ],
    )
    return Outcome((record,), Result())
