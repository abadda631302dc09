"""Encodes the assignment of a member of the classic protocol.

Owns the conversion from topic ids to names, which the classic protocol uses. A deleted topic is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.messages.consumer_protocol import encode_framed
from pybroker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_LAST_VERSION = ConsumerProtocolAssignment.__message__.versions.last


def encode_assignment(
    partitions: Mapping[bytes, Collection[int]], metadata: bytes, names: Mapping[bytes, str]
) -> bytes:
    """Return a member's assignment, in the version of its own metadata; raises `MalformedMessage`."""
    if len(metadata) < 2:
        raise MalformedMessage("the member's metadata has no version")
    version = int.from_bytes(metadata[:2], "big", signed=True)
    assigned = [
        TopicPartition(topic=names[topic], partitions=sorted(partitions[topic]))
        for topic in sorted(partitions)
        if topic in names
    ]
    return encode_framed(ConsumerProtocolAssignment(assigned_partitions=assigned), max(0, min(version, _LAST_VERSION)))
