"""BrokerRegistration (62): a starting broker registers with the controller."""

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
    nullable,
    string,
    uint16,
    uuid,
    versions,
)


class Listener(Struct):
    """A listener of a broker."""

    name: Annotated[str, string, versions("0+"), map_key, about("The listener's name.")] = ""
    host: Annotated[str, string, versions("0+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, uint16, versions("0+"), about("Port to connect to.")] = 0
    security_protocol: Annotated[
        int, int16, versions("0+"), about("0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.")
    ] = 0


class Feature(Struct):
    """The levels of a feature that a broker supports."""

    name: Annotated[str, string, versions("0+"), map_key, about("The feature's name.")] = ""
    min_supported_version: Annotated[int, int16, versions("0+"), about("The lowest level.")] = 0
    max_supported_version: Annotated[int, int16, versions("0+"), about("The highest level.")] = 0


class BrokerRegistrationRequest(Message, api_key=62, kind="request", versions="0-4", flexible="0+"):
    """Registers a new incarnation of a broker (KIP-631)."""

    broker_id: Annotated[int, int32, versions("0+"), about("The broker's id.")] = 0
    cluster_id: Annotated[str, string, versions("0+"), about("Id of the cluster that it belongs to.")] = ""
    incarnation_id: Annotated[bytes, uuid, versions("0+"), about("A fresh id for each run of its process.")] = bytes(16)
    listeners: Annotated[list[Listener], versions("0+"), about("Where it is reached.")] = []
    features: Annotated[list[Feature], versions("0+"), about("The features that it supports.")] = []
    rack: Annotated[str | None, string, versions("0+"), nullable("0+"), about("The rack that it stands in.")] = ""
    is_migrating_zk_broker: Annotated[
        bool, boolean, versions("1+"), about("Whether it is on its way from ZooKeeper.")
    ] = False
    log_dirs: Annotated[
        list[bytes], uuid, versions("2+"), ignorable, about("Ids of the log directories that work.")
    ] = []
    previous_broker_epoch: Annotated[
        int, int64, versions("3+"), ignorable, about("Its epoch before a stop in good order, -1 where there is none.")
    ] = -1


class BrokerRegistrationResponse(Message, api_key=62, kind="response", versions="0-4", flexible="0+"):
    """The broker's epoch, or an error."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    broker_epoch: Annotated[
        int, int64, versions("0+"), about("The broker's epoch from now on, -1 where it is refused.")
    ] = -1
