"""The metadata records and control records, in Kafka's own schemas: one module per record.

Owns the mapping from a metadata record type to its declaration, which is imported at its first use. Knows nothing of
batches and logs. `frame` encodes and decodes the value of a record in the metadata log.
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
"""The metadata records by their number in Kafka: all those of Kafka 4.3, so that any metadata log can be read."""


@cache
def record_class(record_type: int) -> type[Message]:
    """Return the class of the metadata record type. Raises `KeyError` if the type is not declared."""
    name = METADATA_RECORDS[record_type]
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name.removesuffix("Record"))
    module = import_module(f"{__name__}.{words.removeprefix('_')}")
    return cast("type[Message]", getattr(module, name))
