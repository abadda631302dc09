"""The records of our internal logs, in Kafka's own schemas: one module per record.

Owns the way from a record type to its declaration, which is imported when first met. Knows nothing of batches and logs:
`frame` turns a record into the bytes of a log record's value and back; the metadata log's replay starts there.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pybroker.protocol.schema import Message

METADATA_RECORDS = {
    0: "RegisterBrokerRecord",
    1: "UnregisterBrokerRecord",
    2: "TopicRecord",
    3: "PartitionRecord",
    4: "ConfigRecord",
    5: "PartitionChangeRecord",
    7: "FenceBrokerRecord",
    8: "UnfenceBrokerRecord",
    9: "RemoveTopicRecord",
    10: "DelegationTokenRecord",
    11: "UserScramCredentialRecord",
    12: "FeatureLevelRecord",
    14: "ClientQuotaRecord",
    15: "ProducerIdsRecord",
    17: "BrokerRegistrationChangeRecord",
    18: "AccessControlEntryRecord",
    19: "RemoveAccessControlEntryRecord",
    20: "NoOpRecord",
    21: "ZkMigrationStateRecord",
    22: "RemoveUserScramCredentialRecord",
    23: "BeginTransactionRecord",
    24: "EndTransactionRecord",
    25: "AbortTransactionRecord",
    26: "RemoveDelegationTokenRecord",
    27: "RegisterControllerRecord",
    28: "ClearElrRecord",
}
"""Kafka's numbers of the metadata records: all of Kafka 4.3's, so that any metadata log can be read."""


@cache
def record_class(record_type: int) -> type[Message]:
    """Find the metadata record declared under `record_type`; raises `KeyError` where there is none."""
    name = METADATA_RECORDS[record_type]
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name.removesuffix("Record"))
    module = import_module(f"{__name__}.{words.removeprefix('_')}")
    return cast("type[Message]", getattr(module, name))
