"""Why a group's event is refused: one exception for each wire error, which carries its code.

The code stands here, and not in `pybroker.handlers.errors` alone, because most replies carry codes for parts of them.
What every coordinator refuses is in `pybroker.coordinator.runtime.errors`.

    GroupError
    ├── FencedInstanceIdError            another member has taken the static member's place
    ├── FencedMemberEpochError           the member's epoch is not the one in force (KIP-848)
    ├── GroupIdNotFoundError             there is no such group, or it is of another type
    ├── GroupMaxSizeReachedError         the group is full
    ├── IllegalGenerationError           the generation is not the one in force
    ├── InconsistentGroupProtocolError   the group is of another type, or no protocol would be common to all
    ├── InvalidGroupIdError              no group can have this id
    ├── InvalidRegularExpressionError    RE2 does not understand it (KIP-848)
    ├── InvalidRequestError              the request contradicts itself
    ├── InvalidSessionTimeoutError       outside of what the broker allows
    ├── NonEmptyGroupError               the group has members
    ├── RebalanceInProgressError         join again
    ├── StaleMemberEpochError            the member's epoch has passed (KIP-848)
    ├── UnknownMemberIdError             the group has no such member
    ├── UnreleasedInstanceIdError        the static member is still there (KIP-848)
    ├── UnsupportedAssignorError         the broker has no such assignor (KIP-848)
    └── UnsupportedVersionError          the request is too old for what the member is (KIP-848)
"""

from __future__ import annotations

from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.protocol.errors import ErrorCode


class GroupError(CoordinatorError):
    """Base of what this package raises."""


class FencedInstanceIdError(GroupError):
    """Another member has taken the static member's place."""

    code = ErrorCode.FENCED_INSTANCE_ID


class FencedMemberEpochError(GroupError):
    """The member's epoch is not the one in force."""

    code = ErrorCode.FENCED_MEMBER_EPOCH


class GroupIdNotFoundError(GroupError):
    """There is no such group, or it is of another type."""

    code = ErrorCode.GROUP_ID_NOT_FOUND


class GroupMaxSizeReachedError(GroupError):
    """The group is full."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class IllegalGenerationError(GroupError):
    """The generation is not the one in force."""

    code = ErrorCode.ILLEGAL_GENERATION


class InconsistentGroupProtocolError(GroupError):
    """The group is of another type, or no protocol would be common to all members."""

    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class InvalidGroupIdError(GroupError):
    """No group can have this id."""

    code = ErrorCode.INVALID_GROUP_ID


class InvalidRegularExpressionError(GroupError):
    """RE2 does not understand the regular expression."""

    code = ErrorCode.INVALID_REGULAR_EXPRESSION


class InvalidRequestError(GroupError):
    """The request contradicts itself."""

    code = ErrorCode.INVALID_REQUEST


class InvalidSessionTimeoutError(GroupError):
    """The session timeout is outside of what the broker allows."""

    code = ErrorCode.INVALID_SESSION_TIMEOUT


class NonEmptyGroupError(GroupError):
    """The group has members."""

    code = ErrorCode.NON_EMPTY_GROUP


class RebalanceInProgressError(GroupError):
    """The group is rebalancing."""

    code = ErrorCode.REBALANCE_IN_PROGRESS


class StaleMemberEpochError(GroupError):
    """The member's epoch has passed."""

    code = ErrorCode.STALE_MEMBER_EPOCH


class UnknownMemberIdError(GroupError):
    """The group has no such member."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class UnreleasedInstanceIdError(GroupError):
    """The static member is still there."""

    code = ErrorCode.UNRELEASED_INSTANCE_ID


class UnsupportedAssignorError(GroupError):
    """The broker has no such assignor."""

    code = ErrorCode.UNSUPPORTED_ASSIGNOR


class UnsupportedVersionError(GroupError):
    """The request is too old for what the member is."""

    code = ErrorCode.UNSUPPORTED_VERSION
