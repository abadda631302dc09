"""The metadata record BrokerRegistrationChangeRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, int8, int32, int64, nullable, tag, uuid, versions


class BrokerRegistrationChangeRecord(Message, api_key=17, kind="metadata", versions="0-3", flexible="0+"):
    """BrokerRegistrationChangeRecord."""

    broker_id: Annotated[int, int32, versions("0+")] = 0
    broker_epoch: Annotated[int, int64, versions("0+")] = 0
    fenced: Annotated[int, int8, versions("0+"), tag(0, "0+")] = 0
    in_controlled_shutdown: Annotated[int, int8, versions("1+"), tag(1, "1+")] = 0
    log_dirs: Annotated[list[bytes], uuid, versions("2+"), tag(2, "2+")] = []
    cordoned_log_dirs: Annotated[list[bytes] | None, uuid, versions("3+"), nullable("3+"), tag(3, "3+")] = None
