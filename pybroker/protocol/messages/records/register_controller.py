"""The metadata record RegisterControllerRecord (27)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    boolean,
    int16,
    int32,
    map_key,
    string,
    uint16,
    uuid,
    versions,
)


class ControllerEndpoint(Struct):
    """A listener of the controller."""

    name: Annotated[str, string, versions("0+"), map_key, about("Its name.")] = ""
    host: Annotated[str, string, versions("0+"), about("The host.")] = ""
    port: Annotated[int, uint16, versions("0+"), about("The port.")] = 0
    security_protocol: Annotated[int, int16, versions("0+"), about("Number of the security protocol.")] = 0


class ControllerFeature(Struct):
    """A feature and the levels that the controller supports."""

    name: Annotated[str, string, versions("0+"), map_key, about("Its name.")] = ""
    min_supported_version: Annotated[int, int16, versions("0+"), about("Lowest level supported.")] = 0
    max_supported_version: Annotated[int, int16, versions("0+"), about("Highest level supported.")] = 0


class RegisterControllerRecord(Message, api_key=27, kind="metadata", versions="0", flexible="0+"):
    """A controller has registered its endpoints and features (KIP-919)."""

    controller_id: Annotated[int, int32, versions("0+"), about("The controller.")] = 0
    incarnation_id: Annotated[bytes, uuid, versions("0+"), about("Differs with every start of its process.")] = (
        ZERO_UUID
    )
    zk_migration_ready: Annotated[bool, boolean, versions("0+"), about("Whether it could migrate from ZooKeeper.")] = (
        False
    )
    end_points: Annotated[list[ControllerEndpoint], versions("0+"), about("Where it listens.")] = []
    features: Annotated[list[ControllerFeature], versions("0+"), about("What it supports.")] = []
