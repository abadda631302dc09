"""UpdateFeatures (57): changes the finalized feature levels of the cluster."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    boolean,
    ignorable,
    int8,
    int16,
    int32,
    map_key,
    nullable,
    string,
    versions,
)


class FeatureUpdateKey(Struct):
    """A feature and its new level."""

    feature: Annotated[str, string, versions("0+"), map_key, about("The feature's name.")] = ""
    max_version_level: Annotated[int, int16, versions("0+"), about("The level to finalize; 0 removes the feature.")] = 0
    allow_downgrade: Annotated[bool, boolean, versions("0"), about("Whether the level may be lower than it is.")] = (
        False
    )
    upgrade_type: Annotated[
        int, int8, versions("1+"), about("1 only upwards, 2 downwards where nothing is lost, 3 downwards in any case.")
    ] = 1


class UpdateFeaturesRequest(Message, api_key=57, kind="request", versions="0-2", flexible="0+"):
    """Requests the controller to change feature levels (KIP-584)."""

    timeout_ms: Annotated[int, int32, versions("0+"), about("How long the broker may take, in milliseconds.")] = 60000
    feature_updates: Annotated[list[FeatureUpdateKey], versions("0+"), about("The new levels.")] = []
    validate_only: Annotated[bool, boolean, versions("1+"), about("Whether nothing is to be changed.")] = False


class UpdatableFeatureResult(Struct):
    """The result for one feature."""

    feature: Annotated[str, string, versions("0+"), map_key, about("The feature's name.")] = ""
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""


class UpdateFeaturesResponse(Message, api_key=57, kind="response", versions="0-2", flexible="0+"):
    """The result of the update; up to version 1 also for each feature."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
    results: Annotated[
        list[UpdatableFeatureResult], versions("0-1"), ignorable, about("One result for each feature.")
    ] = []
