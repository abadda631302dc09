"""The records of `__consumer_offsets`, in Kafka's own schemas: one module per record, with its key and its value.

Owns the mapping from a record type to its declarations, imported at their first use, and the version in which each
value is written. Knows nothing of batches and logs. A key begins with the record type in two bytes, a value with its
version in two bytes. `pybroker.coordinator.group` encodes and decodes these records in bulk.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

import msgspec

if TYPE_CHECKING:
    from pybroker.protocol.schema import Message

GROUP_RECORDS = {
    1: ("OffsetCommit", 4),
    2: ("GroupMetadata", 3),
    3: ("ConsumerGroupMetadata", 0),
    4: ("ConsumerGroupPartitionMetadata", 0),
    5: ("ConsumerGroupMemberMetadata", 0),
    6: ("ConsumerGroupTargetAssignmentMetadata", 0),
    7: ("ConsumerGroupTargetAssignmentMember", 0),
    8: ("ConsumerGroupCurrentMemberAssignment", 0),
    16: ("ConsumerGroupRegularExpression", 0),
    17: ("StreamsGroupMetadata", 0),
    19: ("StreamsGroupMemberMetadata", 0),
    20: ("StreamsGroupTargetAssignmentMetadata", 0),
    21: ("StreamsGroupTargetAssignmentMember", 0),
    22: ("StreamsGroupCurrentMemberAssignment", 0),
    23: ("StreamsGroupTopology", 0),
}
"""The declared records by their number in Kafka, and the version in which the value of each is written.

OffsetCommit's value is written in version 1 if the client requested its own retention time, which later versions cannot
carry. Records of type 0 are read as type 1: both keys have the same fields.
"""

LEGACY_OFFSET_COMMIT = 0


class RecordClasses(msgspec.Struct, frozen=True):
    """The declarations of one record type."""

    key: type[Message]
    value: type[Message]
    version: int
    """The version in which values are written."""


@cache
def record_classes(record_type: int) -> RecordClasses:
    """Return the declarations of a record type. Raises `KeyError` if the type is not declared."""
    name, version = GROUP_RECORDS[1 if record_type == LEGACY_OFFSET_COMMIT else record_type]
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    module = import_module(f"{__name__}.{words.removeprefix('_')}")
    key, value = (cast("type[Message]", getattr(module, f"{name}{half}")) for half in ("Key", "Value"))
    return RecordClasses(key, value, version)
