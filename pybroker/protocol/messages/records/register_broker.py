"""The metadata record RegisterBrokerRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
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
    """BrokerEndpoint."""

    name: Annotated[str, string, versions("0+"), map_key] = ""
    host: Annotated[str, string, versions("0+")] = ""
    port: Annotated[int, uint16, versions("0+")] = 0
    security_protocol: Annotated[int, int16, versions("0+")] = 0


class BrokerFeature(Struct):
    """BrokerFeature."""

    name: Annotated[str, string, versions("0+"), map_key] = ""
    min_supported_version: Annotated[int, int16, versions("0+")] = 0
    max_supported_version: Annotated[int, int16, versions("0+")] = 0


class RegisterBrokerRecord(Message, api_key=0, kind="metadata", versions="0-4", flexible="0+"):
    """RegisterBrokerRecord."""

    broker_id: Annotated[int, int32, versions("0+")] = 0
    is_migrating_zk_broker: Annotated[bool, boolean, versions("2+")] = False
    incarnation_id: Annotated[bytes, uuid, versions("0+")] = ZERO_UUID
    broker_epoch: Annotated[int, int64, versions("0+")] = 0
    end_points: Annotated[list[BrokerEndpoint], versions("0+")] = []
    features: Annotated[list[BrokerFeature], versions("0+")] = []
    rack: Annotated[str | None, string, versions("0+"), nullable("0+")] = ""
    fenced: Annotated[bool, boolean, versions("0+")] = True
    in_controlled_shutdown: Annotated[bool, boolean, versions("1+")] = False
    log_dirs: Annotated[list[bytes], uuid, versions("3+"), tag(0, "3+")] = []
    cordoned_log_dirs: Annotated[list[bytes] | None, uuid, versions("4+"), nullable("4+"), tag(1, "4+")] = None
