"""Maps exceptions to error codes of the protocol.

Owns the only table from exception types to Kafka's error codes. Must not decide by an exception's text. A handler
raises `ApiError` for its own errors, or sets them in the affected part of the response.
"""

from __future__ import annotations

import logging

import msgspec

from pybroker.config.errors import ConfigError
from pybroker.controller.errors import (
    ControllerTimeoutError,
    ForeignClusterError,
    NotControllerError,
    StaleBrokerEpochError,
    UnforwardableError,
    UnknownVoterError,
    UnservedByControllerError,
)
from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.machine.runner import ClosedError, SupersededError, UncommittedError, UnwritableError
from pybroker.protocol.errors import LONGEST_MESSAGE, ErrorCode
from pybroker.security.operations import ResourceType
from pybroker.storage.errors import (
    CoordinatorFencedError,
    DirectoryOfflineError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    LogDirectoryNotFoundError,
    StorageError,
    TopicNameTooLongError,
)

log = logging.getLogger("pybroker.handlers")


class WireError(msgspec.Struct, frozen=True):
    """An error for a client: the code, and a message for responses that have a field for it.

    The message always fits.
    """

    code: ErrorCode
    message: str | None

    def __post_init__(self) -> None:
        """Truncate a message that might not fit in a protocol string."""
        if self.message is not None and len(self.message) > LONGEST_MESSAGE:
            msgspec.structs.force_setattr(self, "message", self.message[:LONGEST_MESSAGE])


class ApiError(Exception):
    """Raised by a handler to reject a whole request."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


_CODES: dict[type[Exception], ErrorCode] = {
    ConfigError: ErrorCode.INVALID_CONFIG,
    DirectoryOfflineError: ErrorCode.KAFKA_STORAGE_ERROR,
    LogDirectoryNotFoundError: ErrorCode.LOG_DIR_NOT_FOUND,
    # The topic name with its suffix would exceed the maximum length of a directory name.
    TopicNameTooLongError: ErrorCode.INVALID_TOPIC_EXCEPTION,
    StorageError: ErrorCode.KAFKA_STORAGE_ERROR,
    # Errors of a log for a coordinator's transactional append.
    CoordinatorFencedError: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    InvalidProducerEpochError: ErrorCode.INVALID_PRODUCER_EPOCH,
    InvalidTxnStateError: ErrorCode.INVALID_TXN_STATE,
    # The disk failed while a log was opened or read. The client may find another replica.
    OSError: ErrorCode.KAFKA_STORAGE_ERROR,
    # Another controller is active, or none. Clients find the controller and retry.
    NotControllerError: ErrorCode.NOT_CONTROLLER,
    StaleBrokerEpochError: ErrorCode.STALE_BROKER_EPOCH,
    # As Kafka's brokers return for a forwarded request: the client may retry.
    ControllerTimeoutError: ErrorCode.REQUEST_TIMED_OUT,
    UnforwardableError: ErrorCode.INVALID_REQUEST,
    UnservedByControllerError: ErrorCode.UNSUPPORTED_VERSION,
    ForeignClusterError: ErrorCode.INCONSISTENT_CLUSTER_ID,
    UnknownVoterError: ErrorCode.INVALID_VOTER_KEY,
    TimeoutError: ErrorCode.REQUEST_TIMED_OUT,
    # The coordinator resigned while the request waited. Another broker coordinates the group.
    ClosedError: ErrorCode.NOT_COORDINATOR,
    # As Kafka's coordinator returns it for a write that timed out: clients find the coordinator and retry.
    UncommittedError: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    # As Kafka's coordinator returns for records that are too large: clients do not retry this code.
    UnwritableError: ErrorCode.UNKNOWN_SERVER_ERROR,
    # The member sent a newer request while this one waited. The newer one gets the result.
    SupersededError: ErrorCode.REBALANCE_IN_PROGRESS,
}


def wire_error(error: Exception) -> WireError:
    """Return the client's error for `error`. An unexpected exception is logged and becomes UNKNOWN_SERVER_ERROR."""
    if isinstance(error, ApiError):
        return WireError(error.code, error.message)
    if isinstance(error, CoordinatorError):
        return WireError(error.code, error.message)
    for kind in type(error).__mro__:
        code = _CODES.get(kind)
        if code is not None:
            return WireError(code, str(error))
    log.error("A request failed unexpectedly", exc_info=error)
    return WireError(ErrorCode.UNKNOWN_SERVER_ERROR, None)


def fencing(code: int, *, is_known: bool) -> int:
    """Return the code; INVALID_PRODUCER_EPOCH for PRODUCER_FENCED if the client does not know it (KIP-588)."""
    return code if is_known or code != ErrorCode.PRODUCER_FENCED else ErrorCode.INVALID_PRODUCER_EPOCH


_DENIALS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def denial(resource_type: ResourceType) -> ApiError:
    """Return the authorization error for a resource type."""
    return ApiError(_DENIALS[resource_type])
