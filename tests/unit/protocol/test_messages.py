"""From API keys to declarations."""

from __future__ import annotations

import copy
import importlib
import pickle
import subprocess
import sys

import pytest

from pybroker.protocol import messages
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


@pytest.mark.parametrize(
    ("key", "text"), [(4, "LEADER_AND_ISR .* is not declared"), (93, "93 is not a key of Kafka's protocol")]
)
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


def test_a_module_of_messages_is_imported_with_its_first_use() -> None:
    program = (
        "import sys; from pybroker.protocol.messages import create_topics as create, group_records\n"
        "name = 'pybroker.protocol.messages.create_topics'\n"
        "print(name in sys.modules, create.CreateTopicsRequest is sys.modules[name].CreateTopicsRequest)\n"
        "print('pybroker.protocol.messages.group_records' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]


def test_what_stands_for_a_module_is_copied_and_pickled_as_nothing_of_it() -> None:
    stands = messages.__getattr__("create_topics")
    assert copy.copy(stands).CreateTopicsRequest is request_class(ApiKey.CREATE_TOPICS)
    assert pickle.loads(pickle.dumps(stands)).CreateTopicsRequest is request_class(ApiKey.CREATE_TOPICS)


def test_a_module_that_no_api_has_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="create_topic"):
        importlib.import_module("pybroker.protocol.messages.create_topic")
    with pytest.raises(AttributeError, match="create_topic"):
        getattr(messages, "create_topic")  # noqa: B009  # a name that the types refuse
