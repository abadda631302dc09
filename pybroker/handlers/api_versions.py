"""ApiVersions: which APIs and versions, and which features, this broker has.

Key
    18

Versions
    0-4

Behaviour
    - The answer lists every API that is registered here, and nothing else.
    - Features: supported ranges, and the finalized levels of the metadata image with its epoch (KIP-584).
    - A software name or version that is not of KIP-511's form is INVALID_REQUEST.

Version notes
    - A version above the range is answered in version 0 with UNSUPPORTED_VERSION and the range of this API, so that
      the client can choose one (KIP-511). The response header is version 0 in every version.
    - Produce, Fetch and ListOffsets are served, and so advertised, from 0; Kafka 4 serves them from 3, 4 and 1.
    - Before version 4, features whose range starts at 0 are left out (KAFKA-17011).

Not done
    - Throttling: throttle_time_ms is always 0.
    - The client's software name and version are checked and then forgotten.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles, registered_apis
from pybroker.metadata.features import SUPPORTED_FEATURES
from pybroker.protocol.codec import encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# Encoded answers by (version, features epoch). Every connection asks this first, and the answer changes only with the
# finalized features.
_answers: dict[tuple[int, int], bytes] = {}


def _failed(_request: ApiVersionsRequest, _version: int, error: WireError) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=error.code, api_keys=_api_keys())


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


@handles(ApiVersionsRequest, failed=_failed, unsupported=_unsupported)
def api_versions(request: ApiVersionsRequest, context: RequestContext) -> bytes:
    """Answer with everything that is registered."""
    version = context.version
    if version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    features = context.image.features
    key = (version, features.epoch)
    answer = _answers.get(key)
    if answer is None:
        _answers.clear()
        answer = _answers[key] = encode(_build_response(context), version)
    return answer


def _build_response(context: RequestContext) -> ApiVersionsResponse:
    features = context.image.features
    return ApiVersionsResponse(
        api_keys=_api_keys(),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
            if low > 0 or context.version >= 4
        ],
        finalized_features_epoch=features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in features.levels.items()
            if level > 0
        ],
    )


def _api_keys() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
        for api in sorted(registered_apis().values())
    ]
