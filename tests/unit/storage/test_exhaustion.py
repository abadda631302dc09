from __future__ import annotations

import errno

import pytest

from pybroker.storage.exhaustion import is_exhaustion, limits


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN])
def test_want_of_descriptors_or_memory_is_no_damage(number: int) -> None:
    assert is_exhaustion(OSError(number, "no more"))


@pytest.mark.parametrize(
    "other", [OSError(errno.EIO, "x"), OSError(errno.ENOSPC, "x"), OSError("x"), ValueError(), None]
)
def test_everything_else_is_none(other: object) -> None:
    assert not is_exhaustion(other)


def test_the_limits_are_named() -> None:
    assert "RLIMIT_NOFILE, hard limit" in limits()
