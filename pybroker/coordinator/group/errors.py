"""Errors of a group's event: one exception for each wire error, with its code.

The codes are defined here, not only in `pybroker.handlers.errors`, because most replies contain codes of their parts.
Errors that every coordinator has are in `pybroker.coordinator.runtime.errors`.

    GroupError
    ├── FencedInstanceIdError            another member has the instance id of the static member
    ├── FencedMemberEpochError           the member's epoch is not the current one (KIP-848)
    ├── GroupIdNotFoundError             there is no such group, or it is of another type
    ├── GroupMaxSizeReachedError         the group is full
    ├── IllegalGenerationError           the generation is not the current one
    ├── InconsistentGroupProtocolError   the group is of another type, or no protocol would be common to all
    ├── InvalidGroupIdError              the group id is invalid
    ├── InvalidRegularExpressionError    the pattern is not valid in RE2 (KIP-848)
    ├── InvalidRequestError              the request contradicts itself
    ├── InvalidSessionTimeoutError       the session timeout is outside of the broker's limits
    ├── NonEmptyGroupError               the group has members
    ├── RebalanceInProgressError         the group is rebalancing: rejoin
    ├── StaleMemberEpochError            the member's epoch is outdated (KIP-848)
    ├── StreamsInvalidTopologyError      no cluster can run the topology (KIP-1071)
    ├── UnknownMemberIdError             the group has no such member
    ├── UnreleasedInstanceIdError        the static member has not left yet (KIP-848)
    ├── UnsupportedAssignorError         the broker has no such assignor (KIP-848)
    └── UnsupportedVersionError          the request's version does not support this member's protocol (KIP-848)
"""

from __future__ import annotations

from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.protocol.errors import ErrorCode


class GroupError(CoordinatorError):
    """Base class of this package's errors."""


class FencedInstanceIdError(GroupError):
    """Another member has the instance id of the static member."""

    code = ErrorCode.FENCED_INSTANCE_ID


class FencedMemberEpochError(GroupError):
    """The member's epoch is not the current one."""

    code = ErrorCode.FENCED_MEMBER_EPOCH


class GroupIdNotFoundError(GroupError):
    """There is no such group, or it is of another type."""

    code = ErrorCode.GROUP_ID_NOT_FOUND


class GroupMaxSizeReachedError(GroupError):
    """The group is full."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class IllegalGenerationError(GroupError):
    """The generation is not the current one."""

    code = ErrorCode.ILLEGAL_GENERATION


class InconsistentGroupProtocolError(GroupError):
    """The group is of another type, or no protocol would be common to all members."""

    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class InvalidGroupIdError(GroupError):
    """The group id is invalid."""

    code = ErrorCode.INVALID_GROUP_ID


class InvalidRegularExpressionError(GroupError):
    """The regular expression is not valid in RE2."""

    code = ErrorCode.INVALID_REGULAR_EXPRESSION


class InvalidRequestError(GroupError):
    """The request contradicts itself."""

    code = ErrorCode.INVALID_REQUEST


class InvalidSessionTimeoutError(GroupError):
    """The session timeout is outside of the broker's limits."""

    code = ErrorCode.INVALID_SESSION_TIMEOUT


class NonEmptyGroupError(GroupError):
    """The group has members."""

    code = ErrorCode.NON_EMPTY_GROUP


class RebalanceInProgressError(GroupError):
    """The group is rebalancing."""

    code = ErrorCode.REBALANCE_IN_PROGRESS


class StaleMemberEpochError(GroupError):
    """The member's epoch is outdated."""

    code = ErrorCode.STALE_MEMBER_EPOCH


class StreamsInvalidTopologyError(GroupError):
    """No cluster can run the topology."""

    code = ErrorCode.STREAMS_INVALID_TOPOLOGY


class UnknownMemberIdError(GroupError):
    """The group has no such member."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class UnreleasedInstanceIdError(GroupError):
    """The static member has not left yet."""

    code = ErrorCode.UNRELEASED_INSTANCE_ID


class UnsupportedAssignorError(GroupError):
    """The broker has no such assignor."""

    code = ErrorCode.UNSUPPORTED_ASSIGNOR


class UnsupportedVersionError(GroupError):
    """The request's version does not support this member's protocol."""

    code = ErrorCode.UNSUPPORTED_VERSION
