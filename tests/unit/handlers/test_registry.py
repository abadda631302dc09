"""The rules of handler modules (style 2 and 3)."""

from __future__ import annotations

from importlib import import_module

import pytest

from pybroker.handlers.registry import handler_modules, registered_apis

HEADINGS = ["Key", "Versions", "Behaviour", "Version notes", "Not done"]


def test_every_handler_module_registers_one_api_of_its_name() -> None:
    names = {api.request_type.__module__.rsplit(".", 1)[1] for api in registered_apis().values()}
    assert sorted(names) == handler_modules()


@pytest.mark.parametrize("module", handler_modules())
def test_a_handlers_docstring_is_its_data_sheet(module: str) -> None:
    lines = (import_module(f"pybroker.handlers.{module}").__doc__ or "").splitlines()
    assert [line for line in lines if line in HEADINGS] == HEADINGS


@pytest.mark.parametrize("module", handler_modules())
def test_a_data_sheet_names_the_key_and_versions_that_are_registered(module: str) -> None:
    (api,) = (one for one in registered_apis().values() if one.request_type.__module__.endswith(f".{module}"))
    lines = (import_module(f"pybroker.handlers.{module}").__doc__ or "").splitlines()
    assert lines[lines.index("Key") + 1].strip() == str(api.key)
    assert lines[lines.index("Versions") + 1].strip().startswith(f"{api.min_version}-{api.max_version}")
