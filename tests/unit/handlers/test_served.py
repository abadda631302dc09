"""What listeners know of an API without its handler is what the handler registers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pybroker.handlers.registry import registered_apis
from pybroker.handlers.served import api_names, asked_by_brokers, handlers_of, served_apis
from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.listener_role import ListenerRole

ROLES = [ListenerRole.BROKER, ListenerRole.CONTROLLER]


@pytest.mark.parametrize("role", ROLES)
def test_an_api_is_served_as_its_handler_registers_it(role: ListenerRole) -> None:
    served, registered = served_apis(role), registered_apis(role)
    assert served.keys() == registered.keys()
    assert list(served) == sorted(served)
    for key, api in served.items():
        assert api.definition is registered[key]
        assert api.request_type is registered[key].request_type
        for fact in ("key", "name", "module", "min_version", "max_version", "forwarded"):
            assert getattr(api, fact) == getattr(registered[key], fact)
    assert [name.rpartition(".")[2] for name in handlers_of(role)] == [api.module for api in served.values()]


def test_no_client_quota_is_about_what_brokers_alone_ask() -> None:
    assert asked_by_brokers() == {ApiKey.WRITE_TXN_MARKERS}
    assert ApiKey.FIND_COORDINATOR not in asked_by_brokers(), "it needs CLUSTER_ACTION for share groups alone"


def test_every_key_has_a_name() -> None:
    assert api_names().keys() == registered_apis(ROLES[0]).keys() | registered_apis(ROLES[1]).keys()
    assert api_names()[ApiKey.METADATA] == "Metadata"


def test_a_handler_is_imported_with_its_first_request() -> None:
    program = (
        "import sys; from pybroker.handlers.served import served_apis; apis = served_apis()\n"
        "name = 'pybroker.handlers.create_topics'\n"
        "print(apis[19].name, name in sys.modules, apis[19].request_type.__name__, name in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == ["CreateTopics", "False", "CreateTopicsRequest", "True"]
