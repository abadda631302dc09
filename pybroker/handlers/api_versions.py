"""ApiVersions: returns the API versions and the features of this node.

Key
    18

Versions
    0-4

Behaviour
    - The response lists every API that is registered for the role of the request's listener, and no others.
    - Features: supported ranges, and the finalized levels of the metadata image with its epoch (KIP-584), including
      kraft.version if the log contains the voter set (KIP-853).
    - The client telemetry APIs are omitted without `telemetry.receivers`, as in Kafka without a plug-in.
    - A software name or version with invalid characters (KIP-511) is rejected with INVALID_REQUEST.
    - On broker listeners, the data plane sends the same responses (`encoded_responses`). This handler serves unusual
      requests there, and all requests on controller listeners.

Version notes
    - The response to a version above the range has version 0, UNSUPPORTED_VERSION and the range of this API, so that
      the client can choose a version (KIP-511). The response header is version 0 in every version.
    - Produce, Fetch and ListOffsets are served and advertised from version 0; Kafka 4 serves them from 3, 4 and 1.
    - Before version 4, features whose range starts at 0 are omitted (KAFKA-17011).

Not done
    - Throttling: the data plane serves most of these requests, and no quota counts their time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pybroker.handlers.context import BrokerServices
from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles, registered_apis
from pybroker.handlers.telemetry_client import TELEMETRY_KEYS
from pybroker.metadata.features import KRAFT_VERSION, LEFT_OUT, SUPPORTED_FEATURES
from pybroker.protocol.codec import encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import response_prefix
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from pybroker.security.requirements import NothingRequired

if TYPE_CHECKING:
    from collections.abc import Collection

    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError
    from pybroker.metadata.image import MetadataImage

_FIRST_VERSION_WITH_SOFTWARE_NAME = 3
_FIRST_VERSION_WITH_FEATURES_FROM_0 = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def _failed(_request: ApiVersionsRequest, _version: int, error: WireError) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=error.code, api_keys=_api_keys(ListenerRole.BROKER, ()))


def _unsupported(_context: RequestContext) -> bytes:
    versions = ApiVersionsRequest.__message__.versions
    return encode(
        ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[
                ApiVersion(
                    api_key=ApiVersionsRequest.__message__.api_key,
                    min_version=versions.first,
                    max_version=versions.last,
                )
            ],
        ),
        0,
    )


@handles(
    ApiVersionsRequest,
    requires=NothingRequired("Clients ask before they authenticate, to find out how they can."),
    failed=_failed,
    unsupported=_unsupported,
    listeners=ListenerRole.BOTH,
)
def api_versions(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    """Return all registered APIs."""
    version = context.version
    if version >= _FIRST_VERSION_WITH_SOFTWARE_NAME and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    services = context.services
    unserved = TELEMETRY_KEYS if isinstance(services, BrokerServices) and services.telemetry is None else ()
    return _build_response(context.image, version, context.role, unserved)


def encoded_responses(image: MetadataImage, unserved: Collection[int] = ()) -> dict[int, bytes]:
    """Return the response of every version, from the bytes after the correlation id.

    It is the same for every valid request on broker listeners. API keys in `unserved` are omitted.
    """
    versions = ApiVersionsRequest.__message__.versions
    return {
        version: response_prefix(ApiVersionsRequest.__message__.api_key, version)
        + encode(_build_response(image, version, ListenerRole.BROKER, unserved), version)
        for version in range(versions.first, versions.last + 1)
    }


def _build_response(
    image: MetadataImage, version: int, role: ListenerRole, unserved: Collection[int]
) -> ApiVersionsResponse:
    features = image.features
    return ApiVersionsResponse(
        api_keys=_api_keys(role, unserved),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
            if low > 0 or version >= _FIRST_VERSION_WITH_FEATURES_FROM_0
        ],
        finalized_features_epoch=features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in {**features.levels, KRAFT_VERSION: features.kraft_version}.items()
            if level > 0 and name not in LEFT_OUT
        ],
    )


def _api_keys(role: ListenerRole, unserved: Collection[int]) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
        for api in registered_apis(role).values()
        if api.key not in unserved
    ]
