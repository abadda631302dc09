"""Kafka's error codes; that they are all there is checked against Kafka's own library in `tests/property/protocol`."""

from __future__ import annotations

import pytest

from pybroker.protocol.errors import ErrorCode, MalformedMessage, ProtocolError, UnencodableValue, UnsupportedVersion


def test_codes_are_numbers_with_a_name_a_text_and_whether_to_try_again() -> None:
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (int(code), code.name, code.retriable) == (6, "NOT_LEADER_OR_FOLLOWER", True)
    assert ErrorCode(36) is ErrorCode.TOPIC_ALREADY_EXISTS
    assert not ErrorCode.TOPIC_ALREADY_EXISTS.retriable


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_every_code_has_one_short_sentence(code: ErrorCode) -> None:
    assert code.message.endswith(".")
    assert len(code.message) < 120


@pytest.mark.parametrize("error", [MalformedMessage, UnsupportedVersion, UnencodableValue])
def test_what_the_package_raises_has_one_base(error: type[Exception]) -> None:
    assert issubclass(error, ProtocolError)
