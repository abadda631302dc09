"""Errors of coordinators for an event: one exception for each wire error, with its code.

CoordinatorError
├── CoordinatorLoadInProgressError   the partition is being loaded: retry
├── CoordinatorNotAvailableError     the key, or the topic, is not available now: find the coordinator again
├── NotCoordinatorError              another broker leads the partition
└── the errors of each kind, in a tree of their own
"""

from __future__ import annotations

from typing import ClassVar

from pybroker.protocol.errors import LONGEST_MESSAGE, ErrorCode


class CoordinatorError(Exception):
    """Base class of coordinators' errors."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.code.message)
        self.message = message if message is None else message[:LONGEST_MESSAGE]


class CoordinatorLoadInProgressError(CoordinatorError):
    """The coordinator's partition is being loaded."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorNotAvailableError(CoordinatorError):
    """The key is not available now."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class NotCoordinatorError(CoordinatorError):
    """This broker does not lead the key's partition."""

    code = ErrorCode.NOT_COORDINATOR
