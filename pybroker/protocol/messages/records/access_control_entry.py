"""The metadata record AccessControlEntryRecord (18)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, about, int8, string, uuid, versions


class AccessControlEntryRecord(Message, api_key=18, kind="metadata", versions="0", flexible="0+"):
    """An access control entry is added."""

    id: Annotated[bytes, uuid, versions("0+"), about("The rule's id.")] = ZERO_UUID
    resource_type: Annotated[int, int8, versions("0+"), about("Kind of the resource.")] = 0
    resource_name: Annotated[str, string, versions("0+"), about("Its name, or what its name begins with.")] = ""
    pattern_type: Annotated[int, int8, versions("0+"), about("3 for a literal name, 4 for a prefix.")] = 0
    principal: Annotated[str, string, versions("0+"), about("Whom it is about.")] = ""
    host: Annotated[str, string, versions("0+"), about("From which host, * for any.")] = ""
    operation: Annotated[int, int8, versions("0+"), about("What it is about.")] = 0
    permission_type: Annotated[int, int8, versions("0+"), about("2 forbids, 3 allows.")] = 0
