"""The metadata record BrokerRegistrationChangeRecord (17)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int8, int32, int64, nullable, tag, uuid, versions


class BrokerRegistrationChangeRecord(Message, api_key=17, kind="metadata", versions="0-3", flexible="0+"):
    """The registration of a broker has changed."""

    broker_id: Annotated[int, int32, versions("0+"), about("The broker's id.")] = 0
    broker_epoch: Annotated[int, int64, versions("0+"), about("The controller's number for this registration.")] = 0
    fenced: Annotated[int, int8, versions("0+"), tag(0, "0+"), about("-1 unfenced, 1 fenced, 0 as before.")] = 0
    in_controlled_shutdown: Annotated[
        int, int8, versions("1+"), tag(1, "1+"), about("1 shutting down, 0 as before.")
    ] = 0
    log_dirs: Annotated[
        list[bytes], uuid, versions("2+"), tag(2, "2+"), about("Ids of its log directories that work.")
    ] = []
    cordoned_log_dirs: Annotated[
        list[bytes] | None,
        uuid,
        versions("3+"),
        nullable("3+"),
        tag(3, "3+"),
        about("Ids of the log directories that get no new replicas; null as before."),
    ] = None
