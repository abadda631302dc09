"""The metadata record RegisterBrokerRecord (0)."""

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
    int64,
    map_key,
    nullable,
    string,
    tag,
    uint16,
    uuid,
    versions,
)


class BrokerEndpoint(Struct):
    """A listener of the broker."""

    name: Annotated[str, string, versions("0+"), map_key, about("The listener's name.")] = ""
    host: Annotated[str, string, versions("0+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, uint16, versions("0+"), about("Port to connect to.")] = 0
    security_protocol: Annotated[
        int, int16, versions("0+"), about("0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.")
    ] = 0


class BrokerFeature(Struct):
    """A feature and the levels that the broker supports."""

    name: Annotated[str, string, versions("0+"), map_key, about("The feature's name.")] = ""
    min_supported_version: Annotated[int, int16, versions("0+"), about("The lowest level it can run with.")] = 0
    max_supported_version: Annotated[int, int16, versions("0+"), about("The highest level it can run with.")] = 0


class RegisterBrokerRecord(Message, api_key=0, kind="metadata", versions="0-4", flexible="0+"):
    """A broker has registered."""

    broker_id: Annotated[int, int32, versions("0+"), about("The broker's id.")] = 0
    is_migrating_zk_broker: Annotated[bool, boolean, versions("2+"), about("Whether it moves over from ZooKeeper.")] = (
        False
    )
    incarnation_id: Annotated[bytes, uuid, versions("0+"), about("Made anew at each start of the broker.")] = ZERO_UUID
    broker_epoch: Annotated[int, int64, versions("0+"), about("The controller's number for this registration.")] = 0
    end_points: Annotated[list[BrokerEndpoint], versions("0+"), about("Its listeners.")] = []
    features: Annotated[list[BrokerFeature], versions("0+"), about("The features it knows.")] = []
    rack: Annotated[str | None, string, versions("0+"), nullable("0+"), about("The broker's rack.")] = ""
    fenced: Annotated[bool, boolean, versions("0+"), about("Whether it may not lead yet.")] = True
    in_controlled_shutdown: Annotated[bool, boolean, versions("1+"), about("Whether it is shutting down.")] = False
    log_dirs: Annotated[
        list[bytes], uuid, versions("3+"), tag(0, "3+"), about("Ids of its log directories that work.")
    ] = []
    cordoned_log_dirs: Annotated[
        list[bytes] | None,
        uuid,
        versions("4+"),
        nullable("4+"),
        tag(1, "4+"),
        about("Ids of the log directories that get no new replicas; null before it says."),
    ] = None
