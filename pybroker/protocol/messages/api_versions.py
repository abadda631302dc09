"""ApiVersions (18): the APIs and versions that a broker serves."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
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
    """Requests the supported APIs and features; the first request on most connections."""

    client_software_name: Annotated[
        str, string, versions("3+"), ignorable, about("Which client library asks (KIP-511).")
    ] = ""
    client_software_version: Annotated[str, string, versions("3+"), ignorable, about("Which version of it.")] = ""


class ApiVersion(Struct):
    """An API and the versions served."""

    api_key: Annotated[int, int16, versions("0+"), map_key, about("Number of the API.")] = 0
    min_version: Annotated[int, int16, versions("0+"), about("Lowest version served.")] = 0
    max_version: Annotated[int, int16, versions("0+"), about("Highest version served.")] = 0


class SupportedFeatureKey(Struct):
    """A feature and the levels that this broker can run with."""

    name: Annotated[str, string, versions("3+"), map_key, about("The feature's name.")] = ""
    min_version: Annotated[int, int16, versions("3+"), about("Lowest level this broker can run with.")] = 0
    max_version: Annotated[int, int16, versions("3+"), about("Highest level this broker can run with.")] = 0


class FinalizedFeatureKey(Struct):
    """A feature and the level that the cluster runs with."""

    name: Annotated[str, string, versions("3+"), map_key, about("The feature's name.")] = ""
    max_version_level: Annotated[int, int16, versions("3+"), about("The level the cluster runs with.")] = 0
    min_version_level: Annotated[int, int16, versions("3+"), about("The lowest level that goes with it.")] = 0


class ApiVersionsResponse(Message, api_key=18, kind="response", versions="0-4", flexible="3+"):
    """The supported APIs and features."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    api_keys: Annotated[list[ApiVersion], versions("0+"), about("Every API served here.")] = []
    throttle_time_ms: Annotated[
        int, int32, versions("1+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    supported_features: Annotated[
        list[SupportedFeatureKey],
        versions("3+"),
        tag(0, "3+"),
        ignorable,
        about("Features this broker knows; up to version 3 without those that start at 0."),
    ] = []
    finalized_features_epoch: Annotated[
        int,
        int64,
        versions("3+"),
        tag(1, "3+"),
        ignorable,
        about("Grows with each change of the finalized features; -1 where unknown."),
    ] = -1
    finalized_features: Annotated[
        list[FinalizedFeatureKey],
        versions("3+"),
        tag(2, "3+"),
        ignorable,
        about("Features the cluster has agreed on; means nothing at epoch -1."),
    ] = []
    zk_migration_ready: Annotated[
        bool,
        boolean,
        versions("3+"),
        tag(3, "3+"),
        ignorable,
        about("Whether a controller could migrate from ZooKeeper."),
    ] = False
