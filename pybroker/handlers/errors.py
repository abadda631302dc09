"""The one place where exceptions become wire codes.

Owns the table from exception types to Kafka's error codes. Must not look at an exception's text to decide. What a
handler finds wrong itself it raises as `ApiError`, or writes into the part of the response that the fault concerns.
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
    """What a client receives: the code, and words where the response has room for them; they always fit."""

    code: ErrorCode
    message: str | None

    def __post_init__(self) -> None:
        """Cut a message that might not fit in a string of the protocol."""
        if self.message is not None and len(self.message) > LONGEST_MESSAGE:
            msgspec.structs.force_setattr(self, "message", self.message[:LONGEST_MESSAGE])


class ApiError(Exception):
    """A handler's refusal of a whole request."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


_CODES: dict[type[Exception], ErrorCode] = {
    ConfigError: ErrorCode.INVALID_CONFIG,
    DirectoryOfflineError: ErrorCode.KAFKA_STORAGE_ERROR,
    LogDirectoryNotFoundError: ErrorCode.LOG_DIR_NOT_FOUND,
    # Its name and what is added to it would be too long for a directory's.
    TopicNameTooLongError: ErrorCode.INVALID_TOPIC_EXCEPTION,
    StorageError: ErrorCode.KAFKA_STORAGE_ERROR,
    # What a log says of a coordinator's append for a transaction.
    CoordinatorFencedError: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    InvalidProducerEpochError: ErrorCode.INVALID_PRODUCER_EPOCH,
    InvalidTxnStateError: ErrorCode.INVALID_TXN_STATE,
    # A disk that fails while a log is opened or read: the client may find another replica.
    OSError: ErrorCode.KAFKA_STORAGE_ERROR,
    # Another controller is active, or none is yet: clients find the controller and retry.
    NotControllerError: ErrorCode.NOT_CONTROLLER,
    StaleBrokerEpochError: ErrorCode.STALE_BROKER_EPOCH,
    # As Kafka's brokers say it of a forwarded request: the client may ask again.
    ControllerTimeoutError: ErrorCode.REQUEST_TIMED_OUT,
    UnforwardableError: ErrorCode.INVALID_REQUEST,
    UnservedByControllerError: ErrorCode.UNSUPPORTED_VERSION,
    ForeignClusterError: ErrorCode.INCONSISTENT_CLUSTER_ID,
    UnknownVoterError: ErrorCode.INVALID_VOTER_KEY,
    TimeoutError: ErrorCode.REQUEST_TIMED_OUT,
    # A coordinator that resigned while the request waited; another one has the group.
    ClosedError: ErrorCode.NOT_COORDINATOR,
    # As Kafka's coordinator returns it for a write that timed out: clients find the coordinator and retry.
    UncommittedError: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    # As Kafka's coordinator says it of records that are too large: no other code would keep clients from asking again.
    UnwritableError: ErrorCode.UNKNOWN_SERVER_ERROR,
    # A member that asked again before it was answered: the answer goes to its later request.
    SupersededError: ErrorCode.REBALANCE_IN_PROGRESS,
}


def wire_error(error: Exception) -> WireError:
    """Return the client's error for `error`; one that nobody foresaw is logged and becomes UNKNOWN_SERVER_ERROR."""
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
    """Return the code for a client that knows PRODUCER_FENCED (KIP-588), or that has to get what there was before."""
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
    """Return the refusal of a request whose principal lacks a right on a resource of that type."""
    return ApiError(_DENIALS[resource_type])
