"""BrokerHeartbeat (63): renews a broker's session with the controller."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    about,
    boolean,
    int16,
    int32,
    int64,
    nullable,
    tag,
    uuid,
    versions,
)


class BrokerHeartbeatRequest(Message, api_key=63, kind="request", versions="0-2", flexible="0+"):
    """Renews a broker's session and reports its state and intentions (KIP-631, KIP-858, KIP-1066)."""

    broker_id: Annotated[int, int32, versions("0+"), about("The broker's id.")] = 0
    broker_epoch: Annotated[int, int64, versions("0+"), about("Its broker epoch.")] = -1
    current_metadata_offset: Annotated[
        int, int64, versions("0+"), about("The offset of the metadata log up to which it has come.")
    ] = 0
    want_fence: Annotated[bool, boolean, versions("0+"), about("Whether it wants to be fenced.")] = False
    want_shut_down: Annotated[bool, boolean, versions("0+"), about("Whether it wants to stop.")] = False
    offline_log_dirs: Annotated[
        list[bytes], uuid, versions("1+"), tag(0, "1+"), about("Ids of the log directories that have failed.")
    ] = []
    cordoned_log_dirs: Annotated[
        list[bytes] | None,
        uuid,
        versions("2+"),
        nullable("2+"),
        tag(1, "2+"),
        about("Ids of the log directories that get no new replicas; null where that is as it was."),
    ] = None


class BrokerHeartbeatResponse(Message, api_key=63, kind="response", versions="0-2", flexible="0+"):
    """The broker's state as the controller knows it."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    is_caught_up: Annotated[
        bool, boolean, versions("0+"), about("Whether it has all of the metadata log, or nearly all.")
    ] = False
    is_fenced: Annotated[bool, boolean, versions("0+"), about("Whether it is fenced.")] = True
    should_shut_down: Annotated[bool, boolean, versions("0+"), about("Whether it may stop now.")] = False
