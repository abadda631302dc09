"""UpdateFeatures: changes the finalized levels of features (KIP-584, KIP-778).

Key
    57

Versions
    0-2

Behaviour
    - All updates succeed, or none: the first invalid one fails the request with INVALID_UPDATE_VERSION, with the
      feature and the reason in the message.
    - The controller and every registered broker must support the level. It can only decrease with a safe or unsafe
      downgrade, and only increase with an upgrade. Level 0 removes a feature persistently.
    - kraft.version can be upgraded from 0 to 1 if every voter is reachable and supports it. The metadata log then
      contains the voter set (KIP-853). It cannot be downgraded.
    - The response is sent when the levels are committed and ApiVersions returns them. Unchanged levels write no record.
    - validate_only does everything but the change.

Version notes
    - Versions 0 and 1 return a result for each feature, with the message NONE. Version 2 has only the top-level error.
    - Version 0 can only upgrade: allow_downgrade is ignored, as in Kafka 4.

Not done
    - metadata.version cannot be downgraded, because records are written in the versions of the highest level. Kafka
      allows downgrades between levels without changes of records.
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
    """Pass the request to the controller, and wait until its changes are applied here."""
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
