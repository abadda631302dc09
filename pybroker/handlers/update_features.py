"""UpdateFeatures: other levels of the features that the cluster agrees on (KIP-584, KIP-778).

Key
    57

Versions
    0-2

Behaviour
    - All or none: the first fault fails the request with INVALID_UPDATE_VERSION, in words that name feature and reason.
    - A level has to be supported by the controller and every registered broker. It falls only where the update is a
      safe or unsafe downgrade, and rises only where it is not. Level 0 removes a feature, which holds over restarts.
    - kraft.version rises from 0 to 1 where every voter can be asked and supports that: the metadata log names the
      voters from then on (KIP-853). It does not fall.
    - A success is answered when the levels are committed and ApiVersions returns them. What is as it was writes
      nothing.
    - With validate_only nothing is changed.

Version notes
    - Versions 0 and 1 name each feature in the results, with the message NONE. Version 2 has the top level only.
    - Version 0 can only go up: allow_downgrade is ignored, as in Kafka 4.

Not done
    - metadata.version does not fall: records are written in the versions of the highest level. Kafka lets it fall as
      far as no record's meaning has changed.
    - Throttling.
    - timeout_ms is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import FeatureUpdate
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError

_FIRST_VERSION_WITHOUT_RESULTS = 2


def _failed(_request: UpdateFeaturesRequest, _version: int, error: WireError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)


@handles(
    UpdateFeaturesRequest,
    requires=[of_request(Operation.ALTER, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def update_features(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    """Have the controller decide, and wait until this broker knows."""
    services = context.services
    result = await services.controller.own().update_features(
        [
            FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
            for update in request.feature_updates
        ],
        validate_only=request.validate_only,
    )
    if result.error_code:
        return UpdateFeaturesResponse(error_code=result.error_code, error_message=result.error_message)
    await services.publisher.published(services.image().offset)
    named = request.feature_updates if context.version < _FIRST_VERSION_WITHOUT_RESULTS else ()
    return UpdateFeaturesResponse(
        error_message=None,
        results=[UpdatableFeatureResult(feature=update.feature, error_message=ErrorCode.NONE.name) for update in named],
    )
