"""Each refusal has a code of its own."""

from __future__ import annotations

from pybroker.coordinator.group import errors
from pybroker.protocol.errors import ErrorCode


def test_each_refusal_is_another_code() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.GroupError)]
    codes = [kind.code for kind in kinds if kind is not errors.GroupError]
    assert len(codes) == len(set(codes)) > 15
    assert ErrorCode.NONE not in codes


def test_without_words_of_its_own_it_says_what_its_code_means() -> None:
    assert str(errors.UnknownMemberIdError()) == ErrorCode.UNKNOWN_MEMBER_ID.message
    assert errors.UnknownMemberIdError("no such member").message == "no such member"
