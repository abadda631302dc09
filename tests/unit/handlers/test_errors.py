"""Exceptions as errors of the wire: what a client receives always fits in a response."""

from __future__ import annotations

import pytest

from pybroker.config.errors import ConfigError
from pybroker.handlers.errors import ApiError, WireError, wire_error
from pybroker.protocol.codec import encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

LONG = "\U0001f600" * 32_000


@pytest.mark.parametrize(
    "error",
    [
        wire_error(ApiError(ErrorCode.INVALID_CONFIG, LONG)),
        wire_error(ConfigError("a.key", LONG, "less")),
        WireError(ErrorCode.INVALID_CONFIG, LONG),
    ],
)
def test_a_message_that_quotes_a_long_value_is_cut_to_what_a_response_can_hold(error: WireError) -> None:
    assert error.code is ErrorCode.INVALID_CONFIG
    assert error.message is not None
    resource = AlterConfigsResourceResponse(
        error_code=error.code, error_message=error.message, resource_type=4, resource_name="1"
    )
    assert encode(IncrementalAlterConfigsResponse(responses=[resource]), 0)


def test_a_message_that_fits_is_whole_and_none_stays_none() -> None:
    assert wire_error(ApiError(ErrorCode.INVALID_CONFIG, "x" * 8_000)).message == "x" * 8_000
    assert wire_error(ApiError(ErrorCode.INVALID_CONFIG)).message is None
