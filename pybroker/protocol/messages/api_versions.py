"""The messages of ApiVersions."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    boolean,
    ignorable,
    int16,
    int32,
    int64,
    map_key,
    string,
    tag,
    versions,
)


class ApiVersionsRequest(Message, api_key=18, kind="request", versions="0-4", flexible="3+"):
    """ApiVersionsRequest."""

    client_software_name: Annotated[str, string, versions("3+"), ignorable] = ""
    client_software_version: Annotated[str, string, versions("3+"), ignorable] = ""


class ApiVersion(Struct):
    """ApiVersion."""

    api_key: Annotated[int, int16, versions("0+"), map_key] = 0
    min_version: Annotated[int, int16, versions("0+")] = 0
    max_version: Annotated[int, int16, versions("0+")] = 0


class SupportedFeatureKey(Struct):
    """SupportedFeatureKey."""

    name: Annotated[str, string, versions("3+"), map_key] = ""
    min_version: Annotated[int, int16, versions("3+")] = 0
    max_version: Annotated[int, int16, versions("3+")] = 0


class FinalizedFeatureKey(Struct):
    """FinalizedFeatureKey."""

    name: Annotated[str, string, versions("3+"), map_key] = ""
    max_version_level: Annotated[int, int16, versions("3+")] = 0
    min_version_level: Annotated[int, int16, versions("3+")] = 0


class ApiVersionsResponse(Message, api_key=18, kind="response", versions="0-4", flexible="3+"):
    """ApiVersionsResponse."""

    error_code: Annotated[int, int16, versions("0+")] = 0
    api_keys: Annotated[list[ApiVersion], versions("0+")] = []
    throttle_time_ms: Annotated[int, int32, versions("1+"), ignorable] = 0
    supported_features: Annotated[list[SupportedFeatureKey], versions("3+"), tag(0, "3+"), ignorable] = []
    finalized_features_epoch: Annotated[int, int64, versions("3+"), tag(1, "3+"), ignorable] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], versions("3+"), tag(2, "3+"), ignorable] = []
    zk_migration_ready: Annotated[bool, boolean, versions("3+"), tag(3, "3+"), ignorable] = False
