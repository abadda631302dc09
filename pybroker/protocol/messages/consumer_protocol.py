"""The frame of the consumer protocol: a version in two bytes, then a subscription or an assignment.

Owns the frame. To the coordinator of a classic group both are opaque bytes in JoinGroup and SyncGroup. Clients, tools
that use DescribeGroups and the migration of a group to the protocol of KIP-848 decode them.
"""

from __future__ import annotations

from typing import TypeVar, cast

from pybroker.protocol.codec import encode, schema_of
from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from pybroker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

Payload = TypeVar("Payload", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def encode_framed(payload: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    """Encode a subscription for JoinGroup's `metadata`, or an assignment for SyncGroup's `assignment`."""
    return version.to_bytes(2, "big") + encode(payload, version)


def decode_framed(
    cls: type[Payload], raw: bytes | memoryview, *, newest: int = 2**15, most_elements: int = 2**31
) -> Payload:
    """Decode a framed subscription or assignment.

    A version above `newest`, or above the newest declared one, is decoded as that version: newer versions only append
    fields. Raises `MalformedMessage`, also if arrays have more than `most_elements` elements.
    """
    if len(raw) < 2:
        raise MalformedMessage(f"{cls.__name__} of {len(raw)} bytes has no version")
    version = int.from_bytes(raw[:2], "big", signed=True)
    if version < 0:
        raise MalformedMessage(f"{cls.__name__} in version {version}")
    version = min(version, newest, cls.__message__.versions.last)
    return cast("Payload", schema_of(cls).decode(raw, version, 2, most_elements)[0])
