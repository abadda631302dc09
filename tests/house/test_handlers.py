"""One file per Kafka API, registered in one place, its docstring its data sheet (style 2, 3)."""

from __future__ import annotations

import re

import pytest

from pybroker.handlers import registry
from pybroker.protocol.api_keys import ApiKey
from tests.support import repository

HEADINGS = ["Key", "Versions", "Behaviour", "Version notes", "Not done"]
MODULES = registry.handler_modules()


def module_of(api: registry.RegisteredApi) -> str:
    """The name that a handler of this API has to have."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).lower()


def test_handler_modules_and_registered_apis_are_the_same_set() -> None:
    assert sorted(module_of(api) for api in registry.registered_apis().values()) == MODULES


def test_every_registered_key_is_kafkas_key_of_that_name() -> None:
    for key, api in registry.registered_apis().items():
        assert ApiKey(key).name.replace("_", "").lower() == api.name.lower()


@pytest.mark.parametrize("module", MODULES)
def test_a_handlers_docstring_is_its_data_sheet(module: str) -> None:
    sheet = repository.docstring(f"pybroker/handlers/{module}.py") or ""
    headings = re.findall(r"^([A-Z][a-z ]+)$", sheet, re.M)
    assert headings == HEADINGS


@pytest.mark.parametrize("api", registry.registered_apis().values(), ids=lambda api: api.name)
def test_a_data_sheet_has_the_key_and_versions_that_are_registered(api: registry.RegisteredApi) -> None:
    sheet = repository.docstring(f"pybroker/handlers/{module_of(api)}.py") or ""
    key = re.search(r"^Key\n +(\d+)", sheet, re.M)
    versions = re.search(r"^Versions\n +(\d+)-(\d+)", sheet, re.M)
    assert key
    assert int(key[1]) == api.key
    assert versions
    assert (int(versions[1]), int(versions[2])) == (api.min_version, api.max_version)


def test_no_handler_knows_another() -> None:
    handlers = {f"pybroker.handlers.{module}" for module in MODULES}
    climbing = [
        f"{path}:{line} {name}"
        for path in repository.files_under("pybroker/handlers", suffix=".py")
        for line, name in repository.imported_modules(path)
        if name.rsplit(".", 1)[0] in handlers
    ]
    assert climbing == []
