"""The values that both sides of a foreign-key join exchange (KIP-213).

The left-hand side sends subscriptions to the foreign key's partition, which returns responses. No bytes here.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import msgspec

from pybroker.streams.errors import StreamsError

SUBSCRIPTION_VERSION = 1
"""The current version of subscriptions. Version 0 has no partition."""
RESPONSE_VERSION = 0
"""The current version of responses."""


class Instruction(IntEnum):
    """The task of the receiver of a subscription (`SubscriptionWrapper.Instruction`)."""

    DELETE_KEY_NO_PROPAGATE = 0
    """Delete the subscription. Send no response."""
    DELETE_KEY_AND_PROPAGATE = 1
    """Delete the subscription. Send a response without a value."""
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    """Subscribe. Send a response, which has no value if the foreign key has none."""
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3
    """Subscribe. Send a response only if the foreign key has a value."""


DELETIONS = frozenset({Instruction.DELETE_KEY_NO_PROPAGATE, Instruction.DELETE_KEY_AND_PROPAGATE})
"""The instructions that end a subscription."""


class SubscriptionWrapper(msgspec.Struct, frozen=True):
    """One record of the left-hand table, as the foreign key's partition knows it.

    `hash` is the murmur3 hash of the left-hand value; None for a deleted record. `primary_partition` is the partition
    of the left-hand record, which receives the response; None in version 0.
    """

    hash: bytes | None
    instruction: Instruction
    primary_key: Any
    primary_partition: int | None
    version: int = SUBSCRIPTION_VERSION

    def __post_init__(self) -> None:
        """Check the version and the key."""
        if not 0 <= self.version <= SUBSCRIPTION_VERSION:
            raise StreamsError(f"unsupported subscription version {self.version}: expected 0 to {SUBSCRIPTION_VERSION}")
        if self.primary_key is None:
            raise StreamsError("a subscription needs a primary key: found None")


class SubscriptionResponseWrapper(msgspec.Struct, frozen=True):
    """The response to a subscription, or to a change of the foreign key's value.

    `original_value_hash` is the hash of the subscription. `primary_partition` selects the partition of the response
    topic. It is not in the bytes.
    """

    original_value_hash: bytes | None
    foreign_value: Any
    primary_partition: int | None
    version: int = RESPONSE_VERSION

    def __post_init__(self) -> None:
        """Check the version."""
        if not 0 <= self.version <= RESPONSE_VERSION:
            raise StreamsError(f"unsupported response version {self.version}: expected {RESPONSE_VERSION}")


class CombinedKey(msgspec.Struct, frozen=True):
    """The key of a subscription: a foreign key, which can be None, and a primary key."""

    foreign_key: Any
    primary_key: Any
