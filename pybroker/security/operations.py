"""Resource types and their operations, numbered as in Kafka's protocol.

Owns the numbers, and the operations of each type. Must not authorize; `authorizer` does.

Source: Kafka's AclOperation, ResourceType and AclEntry.supportedOperations.
"""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """An operation on a resource, numbered as in Kafka's AclOperation."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """The type of a resource, numbered as in Kafka's ResourceType."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """The pattern type of a resource name, numbered as in Kafka's PatternType."""

    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Whether an entry allows or denies, numbered as in Kafka's AclPermissionType."""

    DENY = 2
    ALLOW = 3


ANY = 1
"""Matches every resource type, pattern type, operation or permission in a filter."""
ALL = 2
"""The operation that includes all operations, Kafka's `AclOperation.ALL`."""
WILDCARD = "*"
"""The literal name that matches all resources of a type, and the host that matches all hosts."""

_NO_NAMES = {0: "UNKNOWN", ANY: "ANY"}
RESOURCE_NAMES = _NO_NAMES | {kind.value: kind.name for kind in ResourceType}
PATTERN_NAMES = _NO_NAMES | {kind.value: kind.name for kind in PatternType}
OPERATION_NAMES = _NO_NAMES | {ALL: "ALL"} | {operation.value: operation.name for operation in Operation}
PERMISSION_NAMES = _NO_NAMES | {permission.value: permission.name for permission in Permission}


def name_of(names: dict[int, str], number: int) -> str:
    """Return Kafka's name of a number; UNKNOWN for a number without a name."""
    return names.get(number, "UNKNOWN")


CLUSTER_NAME = "kafka-cluster"
"""Kafka's `Resource.CLUSTER_NAME`: the name of the only resource of type CLUSTER."""

OPERATIONS = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""The operations of each resource type."""
