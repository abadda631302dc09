"""From API keys to declarations."""

from __future__ import annotations

import pytest

from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.messages import request_class, response_class
from tests.support.declarations import declared


def test_every_declared_request_and_response_is_found_by_its_key() -> None:
    for cls in declared():
        spec = cls.__message__
        if spec.kind == "request":
            assert request_class(spec.api_key) is cls
        elif spec.kind == "response":
            assert response_class(spec.api_key) is cls


@pytest.mark.parametrize(("key", "text"), [(4, "LEADER_AND_ISR .* is not declared"), (93, "93 is not one of Kafka's")])
def test_a_key_without_declaration_is_a_key_error(key: int, text: str) -> None:
    for find in (request_class, response_class):
        with pytest.raises(KeyError, match=text):
            find(key)


def test_a_request_and_its_response_agree_on_versions() -> None:
    for cls in declared():
        spec = cls.__message__
        if spec.kind == "request":
            other = response_class(spec.api_key).__message__
            assert (spec.versions, spec.flexible) == (other.versions, other.flexible), ApiKey(spec.api_key).name
