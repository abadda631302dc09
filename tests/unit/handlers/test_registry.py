"""The rules of handler modules (style 2 and 3)."""

from __future__ import annotations

from importlib import import_module

import pytest

from pybroker.handlers.registry import api_names, every_api, handler_modules, registered_apis
from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.listener_role import ListenerRole

HEADINGS = ["Key", "Versions", "Behaviour", "Version notes", "Not done"]


def test_every_handler_module_registers_one_api_of_its_name() -> None:
    assert sorted(api.module for api in every_api()) == handler_modules()


def test_listeners_of_brokers_and_of_controllers_have_apis_of_their_own() -> None:
    brokers, controllers = registered_apis(ListenerRole.BROKER), registered_apis(ListenerRole.CONTROLLER)
    assert ApiKey.METADATA in brokers.keys() - controllers.keys()
    assert brokers[ApiKey.CREATE_TOPICS] is controllers[ApiKey.CREATE_TOPICS]
    assert registered_apis() == brokers
    assert list(brokers) == sorted(brokers)


def test_no_client_quota_is_about_what_brokers_alone_ask() -> None:
    assert [key for key, api in registered_apis().items() if api.is_of_brokers] == [ApiKey.WRITE_TXN_MARKERS]


def test_every_key_has_a_name() -> None:
    assert api_names()[ApiKey.METADATA] == "Metadata"
    assert api_names()[ApiKey.BROKER_HEARTBEAT] == "BrokerHeartbeat"


@pytest.mark.parametrize("module", handler_modules())
def test_a_handlers_docstring_is_its_data_sheet(module: str) -> None:
    lines = (import_module(f"pybroker.handlers.{module}").__doc__ or "").splitlines()
    assert [line for line in lines if line in HEADINGS] == HEADINGS


@pytest.mark.parametrize("module", handler_modules())
def test_a_data_sheet_names_the_key_and_versions_that_are_registered(module: str) -> None:
    (api,) = (one for one in every_api() if one.module == module)
    lines = (import_module(f"pybroker.handlers.{module}").__doc__ or "").splitlines()
    assert lines[lines.index("Key") + 1].strip() == str(api.key)
    assert lines[lines.index("Versions") + 1].strip().startswith(f"{api.min_version}-{api.max_version}")
