"""What the cluster machine answers fits in the protocol's responses, whatever it quotes."""

from __future__ import annotations

from pybroker.controller.cluster.events import ConfigResult, CreatedTopic, Result
from pybroker.metadata.image import ConfigResource
from pybroker.protocol.codec import encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse

QUOTING = "no principal: " + "\U0001f600" * 8_191
"""A message about the longest string that a client can send."""


def test_a_message_is_cut_to_what_a_response_can_hold() -> None:
    made = Result(ErrorCode.INVALID_REQUEST, QUOTING)
    assert made.error_message is not None
    response = AclCreationResult(error_code=made.error_code, error_message=made.error_message)
    assert encode(CreateAclsResponse(results=[response]), 1)
    assert QUOTING.startswith(made.error_message)


def test_so_are_those_of_topics_and_settings() -> None:
    topic = CreatedTopic("t", ErrorCode.INVALID_REQUEST, QUOTING)
    setting = ConfigResult(ConfigResource(2, "t"), ErrorCode.INVALID_REQUEST, QUOTING)
    assert topic.error_message == setting.error_message == Result(ErrorCode.INVALID_REQUEST, QUOTING).error_message
    assert (Result().error_message, Result(ErrorCode.INVALID_REQUEST, "x").error_message) == (None, "x")
