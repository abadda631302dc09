"""What every coordinator refuses has a code, and words."""

from __future__ import annotations

import pytest

from pybroker.coordinator.runtime import errors
from pybroker.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.CoordinatorLoadInProgressError, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (errors.CoordinatorNotAvailableError, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (errors.NotCoordinatorError, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_a_refusal_says_what_its_code_means_or_its_own_words(
    kind: type[errors.CoordinatorError], code: ErrorCode
) -> None:
    assert (kind.code, str(kind()), kind().message) == (code, code.message, None)
    assert (str(kind("moved")), kind("moved").message) == ("moved", "moved")
