"""ControllerRegistration (70): a controller registers with the active controller."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    boolean,
    int16,
    int32,
    map_key,
    nullable,
    string,
    uint16,
    uuid,
    versions,
)


class Listener(Struct):
    """A listener of a controller."""

    name: Annotated[str, string, versions("0+"), map_key, about("The listener's name.")] = ""
    host: Annotated[str, string, versions("0+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, uint16, versions("0+"), about("Port to connect to.")] = 0
    security_protocol: Annotated[
        int, int16, versions("0+"), about("0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.")
    ] = 0


class Feature(Struct):
    """The levels of a feature that a controller supports."""

    name: Annotated[str, string, versions("0+"), map_key, about("The feature's name.")] = ""
    min_supported_version: Annotated[int, int16, versions("0+"), about("The lowest level.")] = 0
    max_supported_version: Annotated[int, int16, versions("0+"), about("The highest level.")] = 0


class ControllerRegistrationRequest(Message, api_key=70, kind="request", versions="0", flexible="0+"):
    """Registers a new incarnation of a controller (KIP-919)."""

    controller_id: Annotated[int, int32, versions("0+"), about("The controller's id.")] = 0
    incarnation_id: Annotated[bytes, uuid, versions("0+"), about("A fresh id for each run of its process.")] = bytes(16)
    zk_migration_ready: Annotated[
        bool, boolean, versions("0+"), about("Whether it can take a cluster over from ZooKeeper.")
    ] = False
    listeners: Annotated[list[Listener], versions("0+"), about("Where it is reached.")] = []
    features: Annotated[list[Feature], versions("0+"), about("The features that it supports.")] = []


class ControllerRegistrationResponse(Message, api_key=70, kind="response", versions="0", flexible="0+"):
    """Whether the controller is registered."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
